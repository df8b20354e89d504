package checkout

import (
	"context"
	"time"

	"gorm.io/gorm"
)

// Now returns the database's clock, by which rows come due.
func (s *SQLite) Now(ctx context.Context) (now time.Time, err error) {
	err = s.read(ctx, "read the clock", func(tx *gorm.DB) (err error) {
		now, err = sqliteClock(tx)
		return err
	})
	return now, err
}

// Add adds one row. A row with a key that is there already is not added: then id is
// that of the row with the key, and nothing of row is taken over.
func (s *SQLite) Add(ctx context.Context, row NewRow) (id int64, added bool, err error) {
	err = s.write(ctx, "add", func(tx *gorm.DB) (err error) {
		if id, added, err = sqliteAddOne(tx, row); err != nil || !added {
			return err
		}
		err = tx.Exec(`INSERT INTO tallies (writer, at, done, failed, added, ids) VALUES (?, 0, 0, 0, 1, 1)`, addWriter).Error
		if err != nil || id%tallyEvery != 0 {
			return err
		}
		return sqliteTallyUp(tx, addWriter)
	})
	return id, added, err
}

func sqliteAddOne(tx *gorm.DB, row NewRow) (id int64, added bool, err error) {
	if row.Key != nil {
		var there []int64
		err := tx.Raw(`SELECT id FROM dataset_keys WHERE key = ?`, *row.Key).Scan(&there).Error
		if err != nil || len(there) > 0 {
			return append(there, 0)[0], false, err
		}
	}
	now, err := sqliteClock(tx)
	if err != nil {
		return 0, false, err
	}
	err = tx.Raw(`INSERT INTO datasets (key, data, available_at) VALUES (?, ?, ?) RETURNING id`,
		row.Key, string(row.Data), row.vestingTime(now).UnixMicro()).Scan(&id).Error
	if err != nil || row.Key == nil {
		return id, err == nil, err
	}
	err = tx.Exec(`INSERT INTO dataset_keys (key, id) VALUES (?, ?)`, *row.Key, id).Error
	return id, err == nil, err
}

// sqliteTallyUp makes one of all tallies of a writer that is no worker.
func sqliteTallyUp(tx *gorm.DB, writer string) error {
	var sum struct{ Done, Failed, Added, IDs int64 }
	err := tx.Raw(`SELECT sum(done), sum(failed), sum(added), sum(ids) FROM tallies WHERE writer = ?`, writer).
		Row().Scan(&sum.Done, &sum.Failed, &sum.Added, &sum.IDs)
	if err != nil {
		return err
	}
	if err := tx.Exec(`DELETE FROM tallies WHERE writer = ?`, writer).Error; err != nil {
		return err
	}
	return tx.Exec(`INSERT INTO tallies (writer, at, done, failed, added, ids) VALUES (?, 0, ?, ?, ?, ?)`,
		writer, sum.Done, sum.Failed, sum.Added, sum.IDs).Error
}
