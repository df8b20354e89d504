package checkout

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/txn"
)

// peek runs a look, apart from the claim, at READ COMMITTED, where reading leaves
// no predicate locks behind. With statistics gone stale the planner would rather
// read and sort all that is due than walk the index for as long as it takes.
func (s *Postgres) peek(ctx context.Context, look func(tx *gorm.DB) error) error {
	err := txn.ReadCommitted(ctx, s.db, func(tx *gorm.DB) error {
		if err := tx.Exec(byIndexSQL).Error; err != nil {
			return err
		}
		return look(tx)
	})
	return explain("peek", err)
}

const byIndexSQL = `
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
SET LOCAL enable_sort = off`

// peekFresh looks for fresh keys by the partial index.
func (s *Postgres) peekFresh(ctx context.Context, after int64, n int) ([]int64, error) {
	var ids []int64
	err := s.peek(ctx, func(tx *gorm.DB) error {
		var found []int64
		err := tx.Raw(fmt.Sprintf(s.sql.peekFresh, n), sql.Named("after", after)).Scan(&found).Error
		ids = found
		return err
	})
	return ids, err
}

// The sentinel, the predicate of the index and the limit stand in the text: as
// parameters they would hide the partial index from a generic plan, and make it
// expect a tenth of the table.
const peekFreshSQL = `
SELECT id
FROM {schema}.datasets
WHERE NOT is_processed
	AND available_at <= TIMESTAMPTZ 'epoch'
	AND (available_at, id) > (TIMESTAMPTZ 'epoch', @after )
ORDER BY available_at, id
LIMIT %d`

func (s *Postgres) freshBounds(ctx context.Context) (low, high int64, ok bool, err error) {
	var bounds struct{ Low, High *int64 }
	err = s.peek(ctx, func(tx *gorm.DB) error {
		return tx.Raw(s.sql.freshBounds).Scan(&bounds).Error
	})
	if err != nil || bounds.Low == nil || bounds.High == nil {
		return 0, 0, false, err
	}
	return *bounds.Low, *bounds.High, true, nil
}

const freshBoundsSQL = `
SELECT
	(
		SELECT id
		FROM {schema}.datasets
		WHERE NOT is_processed AND available_at <= TIMESTAMPTZ 'epoch'
		ORDER BY available_at, id
		LIMIT 1
	) AS low,
	(
		SELECT id
		FROM {schema}.datasets
		WHERE NOT is_processed AND available_at <= TIMESTAMPTZ 'epoch'
		ORDER BY available_at DESC, id DESC
		LIMIT 1
	) AS high`

// peekDue is a statement of its own: joined to the other by OR, neither could
// use the index in order.
func (s *Postgres) peekDue(ctx context.Context, from time.Time, n int) (dueRows, error) {
	var rows dueRows
	err := s.peek(ctx, func(tx *gorm.DB) error {
		var found []struct {
			ID          int64
			AvailableAt time.Time
			Now         time.Time
		}
		if err := tx.Raw(fmt.Sprintf(s.sql.peekDue, n), sql.Named("from", from)).Scan(&found).Error; err != nil {
			return err
		}
		rows = dueRows{}
		if len(found) == 0 {
			return tx.Raw(`SELECT statement_timestamp()`).Scan(&rows.now).Error
		}
		rows.oldest, rows.now = found[0].AvailableAt, found[0].Now
		for _, row := range found {
			rows.keys = append(rows.keys, row.ID)
		}
		return nil
	})
	return rows, err
}

// statement_timestamp() rather than clock_timestamp(), which being volatile
// could not bound an index scan; the statement is the first of its transaction,
// so it is no older.
const peekDueSQL = `
SELECT id, available_at, statement_timestamp() AS now
FROM {schema}.datasets
WHERE NOT is_processed
	AND available_at > TIMESTAMPTZ 'epoch'
	AND available_at > @from
	AND available_at <= statement_timestamp()
ORDER BY available_at, id
LIMIT %d`
