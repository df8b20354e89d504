package checkout

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/txn"
	"github.com/windrow-go/windrow/model"
)

// ErrNotFound says that there is no such row.
var ErrNotFound = errors.New("no such row")

// ByID reads one row. now is the database's clock, for Dataset.State.
func (s *Postgres) ByID(ctx context.Context, id int64) (row model.Dataset, now time.Time, err error) {
	return s.one(ctx, s.sql.byID, id)
}

// ByKey reads the row with the caller's key.
func (s *Postgres) ByKey(ctx context.Context, key string) (row model.Dataset, now time.Time, err error) {
	return s.one(ctx, s.sql.byKey, key)
}

const datasetColumns = `
	d.id,
	d.key,
	d.data,
	d.is_processed,
	d.available_at,
	d.last_checkout,
	d.checkouts,
	d.checked_out_by,
	d.attempts,
	d.losses,
	d.round,
	d.refunds,
	d.run_id,
	d.redo_run,
	d.result,
	d.error,
	d.last_error,
	d.processed_at,
	d.version`

const byIDSQL = `
SELECT clock_timestamp() AS now,` + datasetColumns + `
FROM {schema}.datasets AS d
WHERE d.id = ?`

const byKeySQL = `
SELECT clock_timestamp() AS now,` + datasetColumns + `
FROM {schema}.dataset_keys AS k
JOIN {schema}.datasets AS d ON d.id = k.id
WHERE k.key = ?`

func (s *Postgres) one(ctx context.Context, query string, arg any) (model.Dataset, time.Time, error) {
	var found []struct {
		model.Dataset
		Now time.Time
	}
	err := txn.Snapshot(ctx, s.db, func(tx *gorm.DB) error {
		return tx.Raw(query, arg).Scan(&found).Error
	})
	if err != nil {
		return model.Dataset{}, time.Time{}, explain("read a row", err)
	}
	if len(found) == 0 {
		return model.Dataset{}, time.Time{}, ErrNotFound
	}
	found[0].Job = s.job
	return found[0].Dataset, found[0].Now, nil
}

// Finished is a processed row as an export sees it.
type Finished struct {
	ID     int64
	Key    *string
	Data   []byte // nil unless asked for
	Result []byte
	Error  *string // nil: done
}

// ExportOptions say which processed rows an export reads, and how much of them.
type ExportOptions struct {
	State model.State // Done, Failed or empty for both
	// WithData reads every row's data.
	WithData bool
	// DataOfKeyless reads the data of the rows that have no key.
	DataOfKeyless bool
}

// Export calls each for every processed row in the order of ids, all as they
// were at one instant. Rows are streamed: memory does not grow with the table.
// It stops at each's first error and returns it.
func (s *Postgres) Export(ctx context.Context, opts ExportOptions, each func(Finished) error) error {
	var failed error
	err := txn.Snapshot(ctx, s.db, func(tx *gorm.DB) error {
		rows, err := tx.Raw(fmt.Sprintf(s.sql.export, opts.dataColumn(), opts.condition())).Rows()
		if err != nil {
			return err
		}
		failed, err = eachFinished(rows, each)
		return err
	})
	if failed != nil {
		return failed
	}
	return explain("export", err)
}

const exportSQL = `
SELECT d.id, d.key, %s, d.result, d.error
FROM {schema}.datasets AS d
WHERE d.is_processed%s
ORDER BY d.id`

func (o ExportOptions) dataColumn() string {
	switch {
	case o.WithData:
		return "d.data"
	case o.DataOfKeyless:
		return "CASE WHEN d.key IS NULL THEN d.data END"
	default:
		return "NULL"
	}
}

func (o ExportOptions) condition() string {
	switch o.State {
	case model.Done:
		return " AND d.error IS NULL"
	case model.Failed:
		return " AND d.error IS NOT NULL"
	default:
		return ""
	}
}

// eachFinished reads and closes rows; failed is the error of each.
func eachFinished(rows *sql.Rows, each func(Finished) error) (failed, err error) {
	defer rows.Close()
	for rows.Next() {
		var f Finished
		if err := rows.Scan(&f.ID, &f.Key, &f.Data, &f.Result, &f.Error); err != nil {
			return nil, err
		}
		if err := each(f); err != nil {
			return err, nil
		}
	}
	return nil, rows.Err()
}

// Note returns what SetNote has stored under name for the job as a whole, or "".
func (s *Postgres) Note(ctx context.Context, name string) (string, error) {
	var value string
	err := s.readCommitted(ctx, "read the job", func(tx *gorm.DB) error {
		return tx.Raw(`SELECT value FROM `+s.sql.schema+`.job WHERE name = ?`, name).Scan(&value).Error
	})
	return value, err
}

// SetNote stores value under name for the job as a whole.
func (s *Postgres) SetNote(ctx context.Context, name, value string) error {
	return s.readCommitted(ctx, "note about the job", func(tx *gorm.DB) error {
		return tx.Exec(`INSERT INTO `+s.sql.schema+`.job (name, value) VALUES (?, ?)
			ON CONFLICT (name) DO UPDATE SET value = excluded.value`, name, value).Error
	})
}
