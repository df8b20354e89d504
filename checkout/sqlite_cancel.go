package checkout

import (
	"context"

	"gorm.io/gorm"
)

// Cancel ends the row id unless somebody has begun with it: a row that waits for its
// time, or for another try, or is fresh, becomes failed, with [Cancelled] as its
// error, and can be put back like any failed row. Where nothing is changed, the error
// is ErrHeld, ErrProcessed or ErrNotFound.
func (s *SQLite) Cancel(ctx context.Context, id int64) error {
	return s.write(ctx, "cancel", func(tx *gorm.DB) error {
		done := tx.Exec(sqliteCancelSQL, id)
		if done.Error != nil {
			return done.Error
		}
		if done.RowsAffected == 0 {
			return sqliteWhyNot(tx, id)
		}
		if err := sqliteTallyAtRest(tx, tally{writer: cancelWriter, failed: 1}); err != nil || id%tallyEvery != 0 {
			return err
		}
		return sqliteTallyUp(tx, cancelWriter)
	})
}

// CancelKey is Cancel for the row with the caller's key.
func (s *SQLite) CancelKey(ctx context.Context, key string) error {
	return cancelKey(ctx, s, key)
}

// sqliteCancelSQL: the last two conditions are the optimistic predicate.
const sqliteCancelSQL = `
UPDATE datasets
SET
	is_processed = 1,
	processed_at = ` + nowSQL + `,
	result = NULL,
	error = 'cancelled',
	version = NULL,
	refunds = 0
WHERE id = ?
	AND +is_processed = 0
	AND checked_out_by IS NULL`

// sqliteWhyNot tells why a row could not be cancelled.
func sqliteWhyNot(tx *gorm.DB, id int64) error {
	var processed []bool
	if err := tx.Raw(`SELECT is_processed FROM datasets WHERE id = ?`, id).Scan(&processed).Error; err != nil {
		return err
	}
	if len(processed) == 0 {
		return ErrNotFound
	}
	return standing(processed[0])
}
