package checkout

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/windrow-go/windrow/internal/txn"
)

// Cancel ends the row id unless somebody has begun with it: a row that waits for its
// time, or for another try, or is fresh, becomes failed, with [Cancelled] as its
// error, and can be put back like any failed row. A row that is being checked out at
// this moment is either cancelled, and not handed out, or handed out, and not
// cancelled. Where nothing is changed, the error is ErrHeld, ErrProcessed or
// ErrNotFound.
func (s *Postgres) Cancel(ctx context.Context, id int64) error {
	err := txn.Retry(ctx, s.opts.policy("cancel"), func() error {
		return txn.PGX(ctx, s.db, func(tx pgx.Tx) error {
			// Whoever has just taken the row commits within a moment, or is cut off.
			if _, err := tx.Exec(ctx, settle.SQL); err != nil {
				return err
			}
			done, err := tx.Exec(ctx, s.sql.cancel, id)
			if err != nil {
				return err
			}
			if done.RowsAffected() == 0 {
				return s.whyNot(ctx, tx, id)
			}
			if id%tallyEvery == 0 {
				_, err = tx.Exec(ctx, s.sql.tallyUp, cancelWriter)
			}
			return err
		})
	})
	return explain("cancel", err)
}

// CancelKey is Cancel for the row with the caller's key.
func (s *Postgres) CancelKey(ctx context.Context, key string) error {
	return cancelKey(ctx, s, key)
}

// cancelSQL: the last two conditions are the optimistic predicate.
const cancelSQL = `
WITH cancelled AS (
	UPDATE {schema}.datasets
	SET
		is_processed = true,
		processed_at = clock_timestamp(),
		result = NULL,
		error = 'cancelled',
		version = NULL,
		refunds = 0
	WHERE id = $1::bigint
		AND is_processed IS NOT TRUE
		AND checked_out_by IS NULL
	RETURNING id
)
INSERT INTO {schema}.tallies (writer, at, done, failed)
SELECT 'cancel', TIMESTAMPTZ 'epoch', 0, 1
FROM cancelled`

// whyNot tells why a row could not be cancelled.
func (s *Postgres) whyNot(ctx context.Context, tx pgx.Tx, id int64) error {
	var processed bool
	err := tx.QueryRow(ctx, `SELECT is_processed FROM `+s.sql.schema+`.datasets WHERE id = $1`, id).Scan(&processed)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return ErrNotFound
	case err != nil:
		return err
	}
	return standing(processed)
}
