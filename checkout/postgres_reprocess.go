package checkout

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/txn"
)

// Reprocess puts the selected rows back, chunk by chunk, each a short transaction of
// its own. A live claim is never cut: such a row begins its next round at its
// check-in. Results stay readable until the next ones are checked in. A run of the
// same selection that was cut off is gone on with.
func (s *Postgres) Reprocess(ctx context.Context, sel Selection, opts ReprocessOptions) (Reprocessed, error) {
	out, err := reprocess(ctx, s, sel, opts)
	if err != nil {
		return out, err
	}
	return out, s.announce(ctx)
}

func (s *Postgres) beginRun(ctx context.Context, selection string, opts ReprocessOptions) (run Run, resumed bool, err error) {
	err = s.readCommitted(ctx, "begin a run", func(tx *gorm.DB) error {
		// Two that begin at once take turns; the lock goes with the transaction.
		if err := tx.Exec(`SELECT pg_advisory_xact_lock(?, hashtext(?))`, s.light, "reprocess:"+selection).Error; err != nil {
			return err
		}
		var found []runRow
		if err := tx.Raw(s.sql.unfinishedRun, selection, opts.KeepHistory).Scan(&found).Error; err != nil {
			return err
		}
		if resumed = len(found) > 0; !resumed {
			if err := tx.Raw(s.sql.insertRun, selection, opts.By, opts.KeepHistory).Scan(&found).Error; err != nil {
				return err
			}
			run = found[0].run()
			return nil
		}
		run = found[0].run()
		if found[0].Busy {
			return fmt.Errorf("%w: run %d, last seen %v ago; if it was killed, try again in %v", ErrRunBusy, run.ID,
				found[0].Now.Sub(run.SeenAt).Round(time.Second), runBusy)
		}
		return tx.Exec(s.sql.seeRun, run.ID).Error
	})
	return run, resumed, err
}

func (s *Postgres) seeRun(ctx context.Context, run *Run) error {
	return s.readCommitted(ctx, "see a run", func(tx *gorm.DB) error { return tx.Exec(s.sql.seeRun, run.ID).Error })
}

// runRow is a run as it is read.
type runRow struct {
	Run      `gorm:"embedded"`
	Position int64
	Busy     bool
	Now      time.Time
}

func (r runRow) run() Run {
	r.Run.position = r.Position
	return r.Run
}

const runColumns = `
	id, selection, created_by, state, put_back, deferred, restored, keep_history,
	created_at, finished_at, seen_at, position`

const unfinishedRunSQL = `
SELECT` + runColumns + `,
	seen_at > clock_timestamp() - interval '30 seconds' AS busy,
	clock_timestamp() AS now
FROM {schema}.runs
WHERE kind = 'reprocess'
	AND state = 'running'
	AND selection = ?
	AND keep_history = ?
ORDER BY id DESC
LIMIT 1`

const insertRunSQL = `
INSERT INTO {schema}.runs (kind, selection, created_by, keep_history, state, seen_at)
VALUES ('reprocess', ?, ?, ?, 'running', clock_timestamp())
RETURNING` + runColumns

const seeRunSQL = `
UPDATE {schema}.runs
SET seen_at = clock_timestamp()
WHERE id = ?`

func (s *Postgres) leaveRun(ctx context.Context, run *Run) error {
	return s.readCommitted(ctx, "leave a run", func(tx *gorm.DB) error {
		return tx.Exec(`UPDATE `+s.sql.schema+`.runs SET seen_at = 'epoch' WHERE id = ?`, run.ID).Error
	})
}

func (s *Postgres) endRun(ctx context.Context, run *Run) error {
	err := s.inOneTrip(ctx, "end a run",
		txn.Statement{SQL: s.sql.finishRun, Args: []any{pgx.NamedArgs{"run": run.ID}}},
		txn.Statement{SQL: s.sql.fold, Args: []any{pgx.NamedArgs{"writer": runWriter(run.ID), "age": 0}}})
	return err
}

const finishRunSQL = `
UPDATE {schema}.runs
SET
	state = 'done',
	finished_at = clock_timestamp()
WHERE id = @run
	AND state = 'running'`

func (s *Postgres) idBounds(ctx context.Context) (least, greatest int64, err error) {
	err = s.inOneTrip(ctx, "look for rows", txn.Statement{
		SQL: `SELECT coalesce(min(id), 0), coalesce(max(id), 0) FROM ` + s.sql.schema + `.datasets`,
		Rows: func(rows pgx.Rows) error {
			return scanRow(rows, &least, &greatest)
		},
	})
	return least, greatest, err
}

// lookRows is how many rows one look of a reprocess is at.
const lookRows = 5000

func (s *Postgres) look(ctx context.Context, sel Selection, run *Run, after int64) (ids []int64, upTo int64, found bool, err error) {
	query, args := s.lookQuery(sel, run.CreatedAt, "d.id > $1", after)
	var last *int64
	err = s.readOnly(ctx, sel, settle, txn.Statement{SQL: query, Args: args, Rows: func(rows pgx.Rows) error {
		return scanRow(rows, &ids, &last)
	}})
	if err != nil || last == nil {
		return nil, 0, false, err
	}
	return ids, *last, true, nil
}

func (s *Postgres) among(ctx context.Context, sel Selection, run *Run, ids []int64) (selected []int64, err error) {
	query, args := s.lookQuery(sel, run.CreatedAt, "d.id = ANY(CAST($1 AS bigint[]))", ids)
	err = s.readOnly(ctx, sel, settle, txn.Statement{SQL: query, Args: args, Rows: func(rows pgx.Rows) error {
		var last *int64
		return scanRow(rows, &selected, &last)
	}})
	return selected, err
}

// lookQuery is a look at a bounded number of rows. What the user has written is asked
// only of rows that meet the condition.
func (s *Postgres) lookQuery(sel Selection, began time.Time, which string, arg any) (query string, args []any) {
	fits, args := postgresFits(sel, began, []any{arg})
	index := ""
	if sel.Failed || sel.Error != "" { // few, and found by an index of their own
		index = "\n\t\tAND d.is_processed AND d.error IS NOT NULL"
	}
	return fmt.Sprintf(`
SELECT
	coalesce(array_agg(l.id ORDER BY l.id) FILTER (WHERE l.fits), '{}'),
	max(l.id)
FROM (
	SELECT d.id, %s AS fits
	FROM %s.datasets AS d
	WHERE %s%s
	ORDER BY d.id
	LIMIT %d
) AS l`, fits, s.sql.schema, which, index, lookRows), args
}

// postgresFits is whether a row d is selected. It puts its values behind args.
func postgresFits(sel Selection, began time.Time, args []any) (string, []any) {
	bind := func(value any, as string) string {
		args = append(args, value)
		return fmt.Sprintf("CAST($%d AS %s)", len(args), as)
	}
	condition := sel.condition(bind(began, "timestamptz"))
	version, pattern := "", ""
	if sel.NotVersion != "" {
		version = bind(sel.NotVersion, "text")
	}
	if sel.Error != "" {
		pattern = bind(sel.errorPattern("%", likeQuoted), "text")
	}
	terms := sel.terms(version, "IS DISTINCT FROM", pattern, "LIKE")
	return fmt.Sprintf("CASE WHEN %s THEN %s END", condition, terms), args
}

var likeQuoted = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// readOnly runs statements that hold what the user has written, in a transaction that
// can't change anything.
func (s *Postgres) readOnly(ctx context.Context, sel Selection, statements ...txn.Statement) error {
	err := txn.Retry(ctx, s.opts.policy("look for rows"), func() error {
		return s.pipeline(ctx, txn.ReadOnly, statements...)
	})
	var server *pgconn.PgError
	if sel.Where != "" && errors.As(err, &server) && ofCondition(server.Code) {
		return fmt.Errorf("%w: %s", ErrCondition, server.Message)
	}
	return explain("look for rows", err)
}

// ofCondition tells whether an error comes of what the condition says: of its syntax,
// its names, its values, or of an attempt to write.
func ofCondition(state string) bool {
	switch state[:2] {
	case "0A", "21", "22", "25", "2F", "38", "39", "42", "P0":
		return true
	}
	return false
}

func (s *Postgres) idsOf(ctx context.Context, keys []string) (map[string]int64, error) {
	var rows []struct {
		Key string
		ID  int64
	}
	err := s.readCommitted(ctx, "look up keys", func(tx *gorm.DB) error {
		return tx.Raw(`SELECT key, id FROM `+s.sql.schema+`.dataset_keys WHERE key = ANY(CAST(? AS text[]))`,
			array[string]{keys}).Scan(&rows).Error
	})
	found := make(map[string]int64, len(rows))
	for _, row := range rows {
		found[row.Key] = row.ID
	}
	return found, err
}

// putBack also waits for the run's row, so that a cancel, which takes it as well,
// comes before or after, never between.
func (s *Postgres) putBack(ctx context.Context, sel Selection, run *Run, ids []int64, position int64) error {
	args := pgx.NamedArgs{"ids": ids, "run": run.ID, "began": run.CreatedAt, "position": position, "keep": run.KeepHistory, "writer": runWriter(run.ID)}
	going := false
	err := s.inOneTrip(ctx, "reprocess", settle, txn.Statement{SQL: s.sql.lockRun, Args: []any{pgx.NamedArgs{"run": run.ID}}}, txn.Statement{
		SQL:  fmt.Sprintf(s.sql.putBack, sel.condition("@began")),
		Args: []any{args},
		Rows: func(rows pgx.Rows) error {
			if going = rows.Next(); !going {
				return nil
			}
			return rows.Scan(&run.PutBack, &run.Deferred)
		},
	})
	switch {
	case err != nil:
		return err
	case !going:
		return fmt.Errorf("run %d: %w", run.ID, ErrRunOver)
	}
	run.position = position
	return nil
}

const lockRunSQL = `
SELECT id
FROM {schema}.runs
WHERE id = @run
FOR UPDATE`

// liveSQL is a live claim. It stands in the statement as often as it is needed, over
// the row itself, which is the newest version: an expression over what was looked at
// before might tell of the row as it was before a check-in that has been waited for.
const liveSQL = `(NOT d.is_processed AND d.checked_out_by IS NOT NULL AND d.available_at > statement_timestamp())`

// putBackSQL leaves a live claim alone and marks the row. An expired claim that is put
// back gets a new token, so that its worker, should it wake, finds its ticket stale. A
// row that waits for its outcome in an earlier run stays that run's.
// The rows are locked first: then it is certain how they stood.
const putBackSQL = `
WITH picked AS (
	SELECT d.id, d.is_processed AS processed, d.is_processed AND d.error IS NOT NULL AS failed
	FROM {schema}.datasets AS d
	WHERE d.id = ANY(CAST(@ids AS bigint[]))
		AND %s
		AND EXISTS (SELECT FROM {schema}.runs WHERE id = @run AND state = 'running')
	ORDER BY d.id
	FOR UPDATE OF d
), moved AS (
	UPDATE {schema}.datasets AS d
	SET
		is_processed = false,
		available_at = CASE WHEN {live} THEN d.available_at ELSE TIMESTAMPTZ 'epoch' END,
		checkouts = d.checkouts + CASE WHEN {live} OR d.is_processed OR d.checked_out_by IS NULL THEN 0 ELSE 1 END,
		checked_out_by = CASE WHEN {live} THEN d.checked_out_by END,
		attempts = CASE WHEN {live} THEN d.attempts ELSE 0 END,
		losses = CASE WHEN {live} THEN d.losses ELSE 0 END,
		refunds = CASE WHEN {live} THEN d.refunds ELSE 0 END,
		round = d.round + CASE WHEN {live} THEN 0 ELSE 1 END,
		last_error = CASE WHEN {live} THEN d.last_error END,
		run_id = CASE
			WHEN {live} THEN d.run_id
			WHEN d.is_processed THEN CAST(@run AS bigint)
			ELSE coalesce(d.run_id, CAST(@run AS bigint))
		END,
		redo_run = CASE WHEN {live} THEN CAST(@run AS bigint) END
	FROM picked AS p
	WHERE d.id = p.id
	RETURNING
		d.id, p.processed, p.failed,
		d.redo_run IS NOT NULL AS deferred,
		d.round, d.processed_at, d.version, d.error,
		CASE WHEN CAST(@keep AS boolean) AND p.processed THEN d.result END AS result
), tallied AS (
	INSERT INTO {schema}.tallies (writer, at, done, failed)
	SELECT CAST(@writer AS text), TIMESTAMPTZ 'epoch', -count(*) FILTER (WHERE NOT failed), -count(*) FILTER (WHERE failed)
	FROM moved
	WHERE processed
	HAVING count(*) > 0
), kept AS (
	INSERT INTO {schema}.history (id, round, run_id, processed_at, version, error, result)
	SELECT id, round - 1, CAST(@run AS bigint), processed_at, version, error, result
	FROM moved
	WHERE CAST(@keep AS boolean)
		AND processed
	ON CONFLICT DO NOTHING
)
UPDATE {schema}.runs
SET
	position = CAST(@position AS bigint),
	seen_at = clock_timestamp(),
	put_back = put_back + (SELECT count(*) FROM moved WHERE NOT deferred),
	deferred = deferred + (SELECT count(*) FROM moved WHERE deferred)
WHERE id = @run
	AND state = 'running'
RETURNING put_back, deferred`
