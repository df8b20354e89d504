package checkout

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"

	"gorm.io/gorm"
)

// Runs returns all runs, the latest first.
func (s *SQLite) Runs(ctx context.Context) ([]Run, error) {
	var rows []sqliteRun
	var left map[int64]int64
	err := s.read(ctx, "list the runs", func(tx *gorm.DB) (err error) {
		rows = nil
		if err := tx.Raw(`SELECT` + sqliteRunColumns + `, seen_at > ` + nowSQL + ` - 30000000 AS busy FROM runs ORDER BY id DESC`).Scan(&rows).Error; err != nil {
			return err
		}
		left, err = sqliteRunsLeft(ctx, tx)
		return err
	})
	runs := make([]Run, len(rows))
	for i, row := range rows {
		runs[i] = row.run()
		runs[i].State = runs[i].State.standing(row.Busy)
		if left != nil {
			n := left[runs[i].ID]
			runs[i].Left = &n
		}
	}
	return runs, err
}

// sqliteRunsLeft counts the rows that are left of each run, if that can be done in
// time; else it returns nil.
func sqliteRunsLeft(ctx context.Context, tx *gorm.DB) (map[int64]int64, error) {
	limited, cancel := context.WithTimeout(ctx, leftBudget)
	defer cancel()
	var rows []runLeft
	err := tx.WithContext(limited).Raw(sqliteRunsLeftSQL).Scan(&rows).Error
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return nil, nil
	}
	return leftOf(rows), err
}

const sqliteRunsLeftSQL = `
SELECT coalesce(redo_run, run_id) AS run_id, count(*) AS n
FROM datasets
WHERE NOT is_processed
	AND (run_id IS NOT NULL OR redo_run IS NOT NULL)
GROUP BY 1`

// RunLeft counts the rows of a run that are still to be worked, and tells where it
// stands.
func (s *SQLite) RunLeft(ctx context.Context, run int64) (left int64, state RunState, err error) {
	err = s.read(ctx, "look at a run", func(tx *gorm.DB) error {
		return tx.Raw(sqliteRunLeftSQL, run).Row().Scan(&left, &state)
	})
	return left, state, err
}

const sqliteRunLeftSQL = `
SELECT
	(
		SELECT count(*)
		FROM datasets AS d
		WHERE NOT d.is_processed
			AND (d.run_id = r.id OR d.redo_run = r.id)
	),
	r.state
FROM runs AS r
WHERE r.id = ?`

// CancelRun stops a run: no more of its rows are put back, and those that have been,
// and that nobody has worked since or holds just now, become as they were before.
// Their rounds stay counted, so that an idempotency key is never used twice.
// progress is told after each chunk. ErrNotFound says that there is no such run.
func (s *SQLite) CancelRun(ctx context.Context, id int64, progress func(Run) error) (Run, error) {
	run, err := cancelRun(ctx, s, id, progress)
	if err != nil {
		return run, err
	}
	return run, s.write(ctx, "cancel a run", func(tx *gorm.DB) error { return sqliteFold(tx, runWriter(id), 0) })
}

func (s *SQLite) cancelRun(ctx context.Context, id int64) (Run, error) {
	var rows []sqliteRun
	err := s.write(ctx, "cancel a run", func(tx *gorm.DB) error {
		rows = nil
		return tx.Raw(sqliteCancelRunSQL, id).Scan(&rows).Error
	})
	switch {
	case err != nil:
		return Run{}, err
	case len(rows) == 0:
		return Run{}, fmt.Errorf("run %d: %w", id, ErrNotFound)
	}
	return rows[0].run(), nil
}

const sqliteCancelRunSQL = `
UPDATE runs
SET
	state = 'cancelled',
	finished_at = CASE WHEN state = 'cancelled' THEN finished_at ELSE ` + nowSQL + ` END
WHERE id = ?
RETURNING` + sqliteRunColumns

func (s *SQLite) lookAtRun(ctx context.Context, run, after int64) (ids []int64, upTo int64, found bool, err error) {
	err = s.read(ctx, "cancel a run", func(tx *gorm.DB) error {
		ids, upTo, found = nil, 0, false
		rows, err := tx.Raw(fmt.Sprintf(sqliteLookAtRunSQL, lookRows), sql.Named("run", run), sql.Named("after", after)).Rows()
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var fits bool
			if err := rows.Scan(&upTo, &fits); err != nil {
				return err
			}
			if found = true; fits {
				ids = append(ids, upTo)
			}
		}
		return rows.Err()
	})
	return ids, upTo, found, err
}

const sqliteLookAtRunSQL = `
SELECT d.id, coalesce(NOT d.is_processed AND (d.run_id = @run OR d.redo_run = @run ), 0)
FROM datasets AS d
WHERE d.id > @after
ORDER BY d.id
LIMIT %d`

func (s *SQLite) restore(ctx context.Context, run *Run, ids []int64) error {
	list, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	args := []any{sql.Named("ids", string(list)), sql.Named("run", run.ID)}
	var restored int64
	err = s.write(ctx, "cancel a run", func(tx *gorm.DB) error {
		restored = 0
		if err := tx.Exec(sqliteForgetHistorySQL, args...).Error; err != nil {
			return err
		}
		var back []struct{ IsProcessed, Failed bool }
		if err := tx.Raw(sqliteRestoreSQL, args...).Scan(&back).Error; err != nil {
			return err
		}
		sum := tally{writer: runWriter(run.ID)}
		for _, row := range back {
			switch {
			case !row.IsProcessed:
				continue
			case row.Failed:
				sum.failed++
			default:
				sum.done++
			}
			restored++
		}
		if err := sqliteTallyAtRest(tx, sum); err != nil {
			return err
		}
		return tx.Exec(`UPDATE runs SET restored = restored + ? WHERE id = ?`, restored, run.ID).Error
	})
	if err == nil {
		run.Restored += restored
	}
	return err
}

// sqliteBackSQL is a row that is put back as it was: one that waits for its first
// outcome, or is held, stays as it is.
const sqliteBackSQL = `(d.run_id = @run AND d.processed_at IS NOT NULL AND NOT ` + sqliteLiveSQL + `)`

const sqliteForgetHistorySQL = `
DELETE FROM history
WHERE (id, round) IN (
	SELECT d.id, d.round - 1
	FROM datasets AS d
	WHERE d.id IN (SELECT value FROM json_each(@ids ))
		AND +d.is_processed = 0
		AND ` + sqliteBackSQL + `
)
	AND run_id = @run `

// sqliteRestoreSQL also takes the mark from rows that are held and were to be put back.
var sqliteRestoreSQL = strings.ReplaceAll(`
UPDATE datasets AS d
SET
	is_processed = {back},
	available_at = CASE WHEN {back} THEN 0 ELSE d.available_at END,
	checkouts = d.checkouts + CASE WHEN {back} AND d.checked_out_by IS NOT NULL THEN 1 ELSE 0 END,
	checked_out_by = CASE WHEN NOT {back} THEN d.checked_out_by END,
	attempts = CASE WHEN {back} THEN 0 ELSE d.attempts END,
	losses = CASE WHEN {back} THEN 0 ELSE d.losses END,
	refunds = CASE WHEN {back} THEN 0 ELSE d.refunds END,
	last_error = CASE WHEN NOT {back} THEN d.last_error END,
	redo_run = nullif(d.redo_run, @run )
WHERE d.id IN (SELECT value FROM json_each(@ids ))
	AND +d.is_processed = 0
	AND (d.redo_run = @run OR {back})
RETURNING is_processed, error IS NOT NULL AS failed`, "{back}", "coalesce("+sqliteBackSQL+", 0)")

// History returns the former outcomes of a row that were kept, the latest first.
func (s *SQLite) History(ctx context.Context, id int64) ([]Former, error) {
	var rows []struct {
		Former    `gorm:"embedded"`
		Processed *int64
		Text      *string
	}
	err := s.read(ctx, "read a row's history", func(tx *gorm.DB) error {
		rows = nil
		return tx.Raw(`SELECT round, run_id, processed_at AS processed, version, error, result AS text
			FROM history WHERE id = ? ORDER BY round DESC`, id).Scan(&rows).Error
	})
	formers := make([]Former, len(rows))
	for i, row := range rows {
		formers[i] = row.Former
		formers[i].Result = rawOf(row.Text)
		if row.Processed != nil {
			at := instant(*row.Processed)
			formers[i].ProcessedAt = &at
		}
	}
	return formers, err
}

// Diff compares the outcomes that a run with a history has replaced with the new ones;
// samples is how many rows to name of each change.
func (s *SQLite) Diff(ctx context.Context, run int64, samples int) (Diff, error) {
	diff := newDiff()
	err := s.read(ctx, "compare the outcomes of a run", func(tx *gorm.DB) error {
		return diff.read(tx, sqliteDiffSQL, run, samples)
	})
	return diff, err
}

// sqliteDiffSQL has the changes of all rows, in the order of ids. The new outcome is in
// the row, unless the row was put back once more: then it is in the history.
const sqliteDiffSQL = `
SELECT
	CASE
		WHEN NOT n.processed THEN 'pending'
		WHEN n.old_error IS NULL AND n.error IS NOT NULL THEN 'now_failing'
		WHEN n.old_error IS NOT NULL AND n.error IS NULL THEN 'now_done'
		WHEN n.old_error IS NOT NULL THEN 'still_fails'
		WHEN n.old_result = n.result THEN 'same'
		ELSE 'changed'
	END,
	n.id, n.key, n.old_result, n.old_error, n.result, n.error
FROM (
	SELECT
		h.id AS id,
		d.key AS key,
		h.result AS old_result,
		h.error AS old_error,
		later.id IS NOT NULL OR d.is_processed AND d.round = h.round + 1 AS processed,
		CASE WHEN later.id IS NULL THEN d.error ELSE later.error END AS error,
		CASE WHEN later.id IS NULL THEN d.result ELSE later.result END AS result
	FROM history AS h
	JOIN datasets AS d ON d.id = h.id
	LEFT JOIN history AS later ON later.id = h.id AND later.round = h.round + 1
	WHERE h.run_id = ?
	ORDER BY h.id
) AS n`
