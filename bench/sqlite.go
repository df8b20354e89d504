package bench

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/internal/txn"
	"gorm.io/gorm"
)

// prepareBareSQLite is the least that can be done on the embedded engine: one
// connection, no leases, no holders; the first rows that are not processed, and
// their results, in two transactions.
func prepareBareSQLite(ctx context.Context, t task, rec *recorder) (func(context.Context) error, error) {
	db, err := database.OpenSQLite(t.Address, false, nil)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		for {
			began := time.Now()
			ids, err := bareClaim(ctx, db, cmp.Or(t.Batch, 500))
			if err != nil {
				return err
			}
			rec.checkedOut(began, len(ids))
			if len(ids) == 0 {
				return errors.Join(database.Close(db))
			}
			err = txn.Immediate(ctx, db, func(tx *gorm.DB) error {
				return tx.Exec(`UPDATE datasets SET is_processed = 1, result = '{"ok": true}' WHERE id IN ?`, ids).Error
			})
			if err != nil {
				return err
			}
			rec.finished(len(ids))
		}
	}, nil
}

func bareClaim(ctx context.Context, db *gorm.DB, n int) (ids []int64, err error) {
	err = txn.Immediate(ctx, db, func(tx *gorm.DB) error {
		var rows []struct {
			ID   int64
			Data []byte
		}
		err := tx.Raw(`UPDATE datasets SET checkouts = checkouts + 1
			WHERE id IN (SELECT id FROM datasets WHERE NOT is_processed ORDER BY available_at, id LIMIT ?)
			RETURNING id, data`, n).Scan(&rows).Error
		for _, row := range rows {
			ids = append(ids, row.ID)
		}
		return err
	})
	return ids, err
}
