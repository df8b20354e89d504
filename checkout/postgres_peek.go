package checkout

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/windrow-go/windrow/internal/txn"
)

// peek makes a look, apart from the claim, at READ COMMITTED, where reading
// leaves no predicate locks behind. It returns the database's time just before.
func (s *Postgres) peek(ctx context.Context, look txn.Statement) (now time.Time, err error) {
	before := txn.Statement{SQL: byIndexSQL, Rows: func(rows pgx.Rows) error {
		return scanRow(rows, &now, nil, nil, nil, nil)
	}}
	err = s.pipeline(ctx, pgx.ReadCommitted, before, look)
	return now, explain("peek", err)
}

// With statistics gone stale the planner would rather read and sort all that is
// due than walk the index for as long as it takes.
const byIndexSQL = `
SELECT
	statement_timestamp(),
	set_config('jit', 'off', true),
	set_config('enable_seqscan', 'off', true),
	set_config('enable_bitmapscan', 'off', true),
	set_config('enable_sort', 'off', true)`

// peekFresh looks for fresh keys by the partial index.
func (s *Postgres) peekFresh(ctx context.Context, after, upTo int64, n int) ([]int64, error) {
	var ids []int64
	_, err := s.peek(ctx, txn.Statement{
		SQL:  fmt.Sprintf(s.sql.peekFresh, n),
		Args: []any{pgx.NamedArgs{"after": after, "up_to": upTo}},
		Rows: into(&ids),
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
	AND (available_at, id) <= (TIMESTAMPTZ 'epoch', @up_to )
ORDER BY available_at, id
LIMIT %d`

// sample reads single rows, by their ids.
func (s *Postgres) sample(ctx context.Context, ids []int64) ([]int64, error) {
	var fresh []int64
	_, err := s.peek(ctx, txn.Statement{
		SQL:  s.sql.sample,
		Args: []any{pgx.NamedArgs{"ids": ids}},
		Rows: into(&fresh),
	})
	return fresh, err
}

const sampleSQL = `
SELECT id
FROM {schema}.datasets
WHERE id = ANY(CAST(@ids AS bigint[]))
	AND is_processed IS NOT TRUE
	AND available_at <= TIMESTAMPTZ 'epoch'`

func (s *Postgres) bounds(ctx context.Context) (low, high int64, ok bool, err error) {
	return s.lowAndHigh(ctx, s.sql.bounds)
}

const boundsSQL = `
SELECT
	(SELECT id FROM {schema}.datasets ORDER BY id LIMIT 1) AS low,
	(SELECT id FROM {schema}.datasets ORDER BY id DESC LIMIT 1) AS high`

func (s *Postgres) freshBounds(ctx context.Context) (low, high int64, ok bool, err error) {
	return s.lowAndHigh(ctx, s.sql.freshBounds)
}

func (s *Postgres) lowAndHigh(ctx context.Context, sql string) (low, high int64, ok bool, err error) {
	var lowest, highest *int64
	_, err = s.peek(ctx, txn.Statement{
		SQL: sql,
		Rows: func(rows pgx.Rows) error {
			return scanRow(rows, &lowest, &highest)
		},
	})
	if err != nil || lowest == nil || highest == nil {
		return 0, 0, false, err
	}
	return *lowest, *highest, true, nil
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
	var found []dueRow
	now, err := s.peek(ctx, txn.Statement{
		SQL:  fmt.Sprintf(s.sql.peekDue, n),
		Args: []any{pgx.NamedArgs{"from": from}},
		Rows: func(rows pgx.Rows) (err error) {
			found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[dueRow])
			return err
		},
	})
	due := dueRows{now: now}
	for _, row := range found {
		due.keys = append(due.keys, row.ID)
	}
	if len(found) > 0 {
		due.oldest = found[0].AvailableAt
	}
	return due, err
}

type dueRow struct {
	ID          int64
	AvailableAt time.Time
}

// statement_timestamp() rather than clock_timestamp(), which being volatile
// could not bound an index scan.
const peekDueSQL = `
SELECT id, available_at
FROM {schema}.datasets
WHERE NOT is_processed
	AND available_at > TIMESTAMPTZ 'epoch'
	AND available_at > @from
	AND available_at <= statement_timestamp()
ORDER BY available_at, id
LIMIT %d`
