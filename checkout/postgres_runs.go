package checkout

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/txn"
)

// Runs returns all runs, the latest first.
func (s *Postgres) Runs(ctx context.Context) ([]Run, error) {
	var rows []runRow
	err := txn.Snapshot(ctx, s.db, func(tx *gorm.DB) error {
		rows = nil
		return tx.Raw(s.sql.runs).Scan(&rows).Error
	})
	if err != nil {
		return nil, explain("list the runs", err)
	}
	left, err := s.runsLeft(ctx)
	if err != nil {
		return nil, explain("list the runs", err)
	}
	return runsOf(rows, left), nil
}

// runsOf gives runs what is left of them, unless that is not known.
func runsOf(rows []runRow, left map[int64]int64) []Run {
	runs := make([]Run, len(rows))
	for i, row := range rows {
		runs[i] = row.run()
		runs[i].State = runs[i].State.standing(row.Busy)
		if left != nil {
			n := left[runs[i].ID]
			runs[i].Left = &n
		}
	}
	return runs
}

const runsSQL = `
SELECT` + runColumns + `,
	seen_at > clock_timestamp() - interval '30 seconds' AS busy
FROM {schema}.runs
ORDER BY id DESC`

// runLeft is how many rows of a run are left.
type runLeft struct{ RunID, N int64 }

// runsLeft counts the rows that are left of each run, if that can be done in time;
// else it returns nil.
func (s *Postgres) runsLeft(ctx context.Context) (map[int64]int64, error) {
	var rows []runLeft
	err := txn.Snapshot(ctx, s.db, func(tx *gorm.DB) error {
		return limited(tx, leftBudget).Raw(s.sql.runsLeft).Scan(&rows).Error
	})
	if isTimeout(err) {
		return nil, nil
	}
	return leftOf(rows), err
}

// RunLeft counts the rows of a run that are still to be worked, and tells where it
// stands.
func (s *Postgres) RunLeft(ctx context.Context, run int64) (left int64, state RunState, err error) {
	err = txn.Snapshot(ctx, s.db, func(tx *gorm.DB) error {
		return tx.Raw(s.sql.runLeft, run).Row().Scan(&left, &state)
	})
	return left, state, explain("look at a run", err)
}

const runLeftSQL = `
SELECT
	(
		SELECT count(*)
		FROM {schema}.datasets AS d
		WHERE NOT d.is_processed
			AND (d.run_id = r.id OR d.redo_run = r.id)
	),
	r.state
FROM {schema}.runs AS r
WHERE r.id = ?`

func leftOf(rows []runLeft) map[int64]int64 {
	left := make(map[int64]int64, len(rows))
	for _, row := range rows {
		left[row.RunID] += row.N
	}
	return left
}

const runsLeftSQL = `
SELECT coalesce(redo_run, run_id) AS run_id, count(*) AS n
FROM {schema}.datasets
WHERE NOT is_processed
	AND (run_id IS NOT NULL OR redo_run IS NOT NULL)
GROUP BY 1`

// CancelRun stops a run: no more of its rows are put back, and those that have been,
// and that nobody has worked since or holds just now, become as they were before.
// Their rounds stay counted, so that an idempotency key is never used twice.
// progress is told after each chunk. ErrNotFound says that there is no such run.
func (s *Postgres) CancelRun(ctx context.Context, id int64, progress func(Run) error) (Run, error) {
	run, err := cancelRun(ctx, s, id, progress)
	if err != nil {
		return run, err
	}
	return run, s.inOneTrip(ctx, "cancel a run", txn.Statement{SQL: s.sql.fold, Args: []any{pgx.NamedArgs{"writer": runWriter(id), "age": 0}}})
}

func (s *Postgres) cancelRun(ctx context.Context, id int64) (Run, error) {
	var rows []runRow
	err := s.readCommitted(ctx, "cancel a run", func(tx *gorm.DB) error {
		rows = nil
		return tx.Raw(s.sql.cancelRun, id).Scan(&rows).Error
	})
	switch {
	case err != nil:
		return Run{}, err
	case len(rows) == 0:
		return Run{}, fmt.Errorf("run %d: %w", id, ErrNotFound)
	}
	return rows[0].run(), nil
}

const cancelRunSQL = `
UPDATE {schema}.runs
SET
	state = 'cancelled',
	finished_at = CASE WHEN state = 'cancelled' THEN finished_at ELSE clock_timestamp() END
WHERE id = ?
RETURNING` + runColumns

func (s *Postgres) lookAtRun(ctx context.Context, run, after int64) (ids []int64, upTo int64, found bool, err error) {
	var last *int64
	err = s.inOneTrip(ctx, "cancel a run", settle, txn.Statement{
		SQL:  fmt.Sprintf(s.sql.lookAtRun, lookRows),
		Args: []any{pgx.NamedArgs{"after": after, "run": run}},
		Rows: func(rows pgx.Rows) error {
			return scanRow(rows, &ids, &last)
		},
	})
	if err != nil || last == nil {
		return nil, 0, false, err
	}
	return ids, *last, true, nil
}

const lookAtRunSQL = `
SELECT
	coalesce(array_agg(l.id ORDER BY l.id) FILTER (WHERE l.fits), '{}'),
	max(l.id)
FROM (
	SELECT d.id, NOT d.is_processed AND (d.run_id = @run OR d.redo_run = @run) AS fits
	FROM {schema}.datasets AS d
	WHERE d.id > @after
	ORDER BY d.id
	LIMIT %d
) AS l`

func (s *Postgres) restore(ctx context.Context, run *Run, ids []int64) error {
	return s.inOneTrip(ctx, "cancel a run", settle, txn.Statement{
		SQL:  s.sql.restore,
		Args: []any{pgx.NamedArgs{"ids": ids, "run": run.ID, "writer": runWriter(run.ID)}},
		Rows: func(rows pgx.Rows) error {
			return scanRow(rows, &run.Restored)
		},
	})
}

// backSQL is a row that is put back as it was: one that waits for its first outcome,
// or is held, stays as it is.
const backSQL = `(d.run_id = @run AND d.processed_at IS NOT NULL AND NOT ` + liveSQL + `)`

// restoreSQL also takes the mark from rows that are held and were to be put back.
const restoreSQL = `
WITH back AS (
	UPDATE {schema}.datasets AS d
	SET
		is_processed = {back},
		available_at = CASE WHEN {back} THEN TIMESTAMPTZ 'epoch' ELSE d.available_at END,
		checkouts = d.checkouts + CASE WHEN {back} AND d.checked_out_by IS NOT NULL THEN 1 ELSE 0 END,
		checked_out_by = CASE WHEN NOT {back} THEN d.checked_out_by END,
		attempts = CASE WHEN {back} THEN 0 ELSE d.attempts END,
		losses = CASE WHEN {back} THEN 0 ELSE d.losses END,
		refunds = CASE WHEN {back} THEN 0 ELSE d.refunds END,
		last_error = CASE WHEN NOT {back} THEN d.last_error END,
		redo_run = nullif(d.redo_run, @run)
	WHERE d.id = ANY(CAST(@ids AS bigint[]))
		AND NOT d.is_processed
		AND (d.redo_run = @run OR {back})
	RETURNING d.id, d.round, d.is_processed, d.error IS NOT NULL AS failed
), forgotten AS (
	DELETE FROM {schema}.history AS h
	USING back AS b
	WHERE h.id = b.id
		AND h.round = b.round - 1
		AND h.run_id = @run
		AND b.is_processed
), tallied AS (
	INSERT INTO {schema}.tallies (writer, at, done, failed)
	SELECT CAST(@writer AS text), TIMESTAMPTZ 'epoch', count(*) FILTER (WHERE NOT failed), count(*) FILTER (WHERE failed)
	FROM back
	WHERE is_processed
	HAVING count(*) > 0
)
UPDATE {schema}.runs
SET restored = restored + (SELECT count(*) FROM back WHERE is_processed)
WHERE id = @run
RETURNING restored`

// History returns the former outcomes of a row that were kept, the latest first.
func (s *Postgres) History(ctx context.Context, id int64) ([]Former, error) {
	var formers []Former
	err := txn.Snapshot(ctx, s.db, func(tx *gorm.DB) error {
		formers = nil
		return tx.Raw(s.sql.history, id).Scan(&formers).Error
	})
	return formers, explain("read a row's history", err)
}

const historySQL = `
SELECT round, run_id, processed_at, version, error, result
FROM {schema}.history
WHERE id = ?
ORDER BY round DESC`

// Diff compares the outcomes that a run with a history has replaced with the new ones;
// samples is how many rows to name of each change.
func (s *Postgres) Diff(ctx context.Context, run int64, samples int) (Diff, error) {
	diff := newDiff()
	err := txn.Snapshot(ctx, s.db, func(tx *gorm.DB) error {
		return diff.read(tx, fmt.Sprintf(s.sql.diff, "CAST(h.result AS text)", "CAST(n.result AS text)"), run, samples)
	})
	return diff, explain("compare the outcomes of a run", err)
}

// diffSQL has the changes of all rows, in the order of ids. The new outcome is in the
// row, unless the row was put back once more: then it is in the history.
const diffSQL = `
SELECT
	CASE
		WHEN n.processed IS NOT TRUE THEN 'pending'
		WHEN h.error IS NULL AND n.error IS NOT NULL THEN 'now_failing'
		WHEN h.error IS NOT NULL AND n.error IS NULL THEN 'now_done'
		WHEN h.error IS NOT NULL THEN 'still_fails'
		WHEN h.result = n.result THEN 'same'
		ELSE 'changed'
	END AS change,
	h.id AS id,
	d.key AS key,
	%s AS old_result,
	h.error AS old_error,
	%s AS new_result,
	n.error AS new_error
FROM {schema}.history AS h
JOIN {schema}.datasets AS d ON d.id = h.id
LEFT JOIN {schema}.history AS later ON later.id = h.id AND later.round = h.round + 1
CROSS JOIN LATERAL (
	SELECT
		later.id IS NOT NULL OR d.is_processed AND d.round = h.round + 1 AS processed,
		CASE WHEN later.id IS NULL THEN d.error ELSE later.error END AS error,
		CASE WHEN later.id IS NULL THEN d.result ELSE later.result END AS result
) AS n
WHERE h.run_id = ?
ORDER BY h.id`
