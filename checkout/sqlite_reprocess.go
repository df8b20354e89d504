package checkout

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/internal/txn"
)

// Reprocess puts the selected rows back, chunk by chunk, each a short transaction of
// its own. A live claim is never cut: such a row begins its next round at its
// check-in. Results stay readable until the next ones are checked in. A run of the
// same selection that was cut off is gone on with.
func (s *SQLite) Reprocess(ctx context.Context, sel Selection, opts ReprocessOptions) (Reprocessed, error) {
	return reprocess(ctx, s, sel, opts)
}

func (s *SQLite) beginRun(ctx context.Context, selection string, opts ReprocessOptions) (run Run, resumed bool, err error) {
	err = s.write(ctx, "begin a run", func(tx *gorm.DB) error {
		var found []sqliteRun
		if err := tx.Raw(sqliteUnfinishedRunSQL, selection, opts.KeepHistory).Scan(&found).Error; err != nil {
			return err
		}
		if resumed = len(found) > 0; !resumed {
			if err := tx.Raw(sqliteInsertRunSQL, selection, opts.By, opts.KeepHistory).Scan(&found).Error; err != nil {
				return err
			}
			run = found[0].run()
			return nil
		}
		run = found[0].run()
		if found[0].Busy {
			return fmt.Errorf("%w: run %d, last seen %v ago; if it was killed, try again in %v", ErrRunBusy, run.ID,
				instant(found[0].Clock).Sub(run.SeenAt).Round(time.Second), runBusy)
		}
		return tx.Exec(sqliteSeeRunSQL, run.ID).Error
	})
	return run, resumed, err
}

func (s *SQLite) seeRun(ctx context.Context, run *Run) error {
	return s.write(ctx, "see a run", func(tx *gorm.DB) error { return tx.Exec(sqliteSeeRunSQL, run.ID).Error })
}

const sqliteSeeRunSQL = `UPDATE runs SET seen_at = ` + nowSQL + ` WHERE id = ?`

// sqliteRun is a run with its instants as they stand in the file.
type sqliteRun struct {
	Run           `gorm:"embedded"`
	Position      int64
	Busy          bool
	Clock         int64
	Created, Seen int64
	Finished      *int64
}

func (r sqliteRun) run() Run {
	out := r.Run
	out.position, out.CreatedAt, out.SeenAt = r.Position, instant(r.Created), instant(r.Seen)
	if r.Finished != nil {
		at := instant(*r.Finished)
		out.FinishedAt = &at
	}
	return out
}

const sqliteRunColumns = `
	id, selection, created_by, state, put_back, deferred, restored, keep_history,
	created_at AS created, finished_at AS finished, seen_at AS seen, position`

const sqliteUnfinishedRunSQL = `
SELECT` + sqliteRunColumns + `,
	seen_at > ` + nowSQL + ` - 30000000 AS busy,
	` + nowSQL + ` AS clock
FROM runs
WHERE kind = 'reprocess'
	AND state = 'running'
	AND selection = ?
	AND keep_history = ?
ORDER BY id DESC
LIMIT 1`

const sqliteInsertRunSQL = `
INSERT INTO runs (kind, selection, created_by, keep_history, state, seen_at)
VALUES ('reprocess', ?, ?, ?, 'running', ` + nowSQL + `)
RETURNING` + sqliteRunColumns

func (s *SQLite) leaveRun(ctx context.Context, run *Run) error {
	return s.write(ctx, "leave a run", func(tx *gorm.DB) error {
		return tx.Exec(`UPDATE runs SET seen_at = 0 WHERE id = ?`, run.ID).Error
	})
}

func (s *SQLite) endRun(ctx context.Context, run *Run) error {
	return s.write(ctx, "end a run", func(tx *gorm.DB) error {
		err := tx.Exec(`UPDATE runs SET state = 'done', finished_at = `+nowSQL+` WHERE id = ? AND state = 'running'`, run.ID).Error
		if err != nil {
			return err
		}
		return sqliteFold(tx, runWriter(run.ID), 0)
	})
}

func (s *SQLite) idBounds(ctx context.Context) (least, greatest int64, err error) {
	err = s.read(ctx, "look for rows", func(tx *gorm.DB) error {
		return tx.Raw(`SELECT (SELECT coalesce(min(id), 0) FROM datasets), (SELECT coalesce(max(id), 0) FROM datasets)`).Row().Scan(&least, &greatest)
	})
	return least, greatest, err
}

func (s *SQLite) look(ctx context.Context, sel Selection, run *Run, after int64) (ids []int64, upTo int64, found bool, err error) {
	which := "d.id > ?1"
	if sel.Failed || sel.Error != "" { // few, and found by an index of their own
		which += "\n\tAND d.is_processed AND d.error IS NOT NULL"
	}
	err = s.selected(ctx, sel, run.CreatedAt, which, after, func(id int64, fits bool) {
		upTo, found = id, true
		if fits {
			ids = append(ids, id)
		}
	})
	return ids, upTo, found, err
}

func (s *SQLite) among(ctx context.Context, sel Selection, run *Run, ids []int64) (selected []int64, err error) {
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	err = s.selected(ctx, sel, run.CreatedAt, "d.id IN (SELECT value FROM json_each(?1))", string(list), func(id int64, fits bool) {
		if fits {
			selected = append(selected, id)
		}
	})
	return selected, err
}

// selected looks at a bounded number of rows and tells of each whether it is selected.
// What the user has written is asked only of rows that meet the condition.
func (s *SQLite) selected(ctx context.Context, sel Selection, began time.Time, which string, arg any, each func(id int64, fits bool)) error {
	fits, args := sqliteFits(sel, began, []any{arg})
	query := fmt.Sprintf("SELECT d.id, coalesce(%s, 0)\nFROM datasets AS d\nWHERE %s\nORDER BY d.id\nLIMIT %d", fits, which, lookRows)
	return s.readOnly(ctx, sel, query, args, func(rows *sql.Rows) error {
		var id int64
		var fits bool
		if err := rows.Scan(&id, &fits); err != nil {
			return err
		}
		each(id, fits)
		return nil
	})
}

// sqliteFits is whether a row d is selected. It puts its values behind args.
func sqliteFits(sel Selection, began time.Time, args []any) (string, []any) {
	bind := func(value any) string {
		args = append(args, value)
		return fmt.Sprintf("?%d", len(args))
	}
	condition := sel.condition(bind(began.UnixMicro()))
	version, pattern := "", ""
	if sel.NotVersion != "" {
		version = bind(sel.NotVersion)
	}
	if sel.Error != "" {
		pattern = bind(sel.errorPattern("*", globQuoted))
	}
	terms := sel.terms(version, "IS NOT", pattern, "GLOB")
	return fmt.Sprintf("CASE WHEN %s THEN (%s) <> 0 END", condition, terms), args
}

var globQuoted = strings.NewReplacer(`[`, `[[]`, `?`, `[?]`)

// readOnly runs a query that holds what the user has written, through a connection that
// can't change anything.
func (s *SQLite) readOnly(ctx context.Context, sel Selection, query string, args []any, each func(*sql.Rows) error) error {
	db, err := s.reader()
	if err != nil {
		return err
	}
	err = txn.Retry(ctx, s.opts.policy("look for rows"), func() error {
		return txn.Deferred(ctx, db, func(tx *gorm.DB) error {
			rows, err := tx.Statement.ConnPool.QueryContext(ctx, query, args...)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				if err := each(rows); err != nil {
					return err
				}
			}
			return rows.Err()
		})
	})
	var code interface{ Code() int }
	if sel.Where != "" && errors.As(err, &code) && ofSQLiteCondition(code.Code()&0xff) {
		return fmt.Errorf("%w: %s", ErrCondition, strings.TrimPrefix(err.Error(), "SQL logic error: "))
	}
	return explain("look for rows", err)
}

// ofSQLiteCondition tells whether an error comes of what the condition says: of its
// syntax, its names, its values, or of an attempt to write.
func ofSQLiteCondition(code int) bool {
	switch code {
	case 1, 8, 18, 20, 23, 25: // ERROR, READONLY, TOOBIG, MISMATCH, AUTH, RANGE
		return true
	}
	return false
}

// reader is the file opened so that nothing can be written.
func (s *SQLite) reader() (*gorm.DB, error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.readDB == nil {
		db, err := database.LookAtSQLite(s.path, false, s.opts.Logger)
		if err != nil {
			return nil, err
		}
		s.readDB = db
	}
	return s.readDB, nil
}

func (s *SQLite) idsOf(ctx context.Context, keys []string) (map[string]int64, error) {
	found := make(map[string]int64, len(keys))
	err := s.read(ctx, "look up keys", func(tx *gorm.DB) error {
		clear(found)
		lookUp, err := prepare(ctx, tx, `SELECT id FROM dataset_keys WHERE key = ?`)
		if err != nil {
			return err
		}
		defer lookUp.Close()
		for _, key := range keys {
			var id int64
			switch err := lookUp.QueryRowContext(ctx, key).Scan(&id); {
			case err == nil:
				found[key] = id
			case !errors.Is(err, sql.ErrNoRows):
				return err
			}
		}
		return nil
	})
	return found, err
}

// putBack does all of it in the transaction that moves the run on.
func (s *SQLite) putBack(ctx context.Context, sel Selection, run *Run, ids []int64, position int64) error {
	list, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	condition := sel.condition("@began ")
	args := []any{sql.Named("ids", string(list)), sql.Named("run", run.ID), sql.Named("began", run.CreatedAt.UnixMicro())}
	moved := *run
	err = s.write(ctx, "reprocess", func(tx *gorm.DB) error {
		var going []int64
		if err := tx.Raw(`SELECT id FROM runs WHERE id = ? AND state = 'running'`, run.ID).Scan(&going).Error; err != nil {
			return err
		} else if len(going) == 0 {
			return fmt.Errorf("run %d: %w", run.ID, ErrRunOver)
		}
		sum := tally{writer: runWriter(run.ID)}
		err := tx.Raw(fmt.Sprintf(sqlitePickedSQL, condition), args...).Row().Scan(&sum.done, &sum.failed)
		if err != nil {
			return err
		}
		if run.KeepHistory {
			if err := tx.Exec(fmt.Sprintf(sqliteKeepAllSQL, condition), args...).Error; err != nil {
				return err
			}
		}
		var deferred []bool
		if err := tx.Raw(fmt.Sprintf(sqlitePutBackSQL, condition), args...).Scan(&deferred).Error; err != nil {
			return err
		}
		sum.done, sum.failed = -sum.done, -sum.failed
		if err := sqliteTallyAtRest(tx, sum); err != nil {
			return err
		}
		moved = *run
		moved.count(deferred)
		return tx.Exec(`UPDATE runs SET position = ?, put_back = ?, deferred = ?, seen_at = `+nowSQL+` WHERE id = ?`,
			position, moved.PutBack, moved.Deferred, run.ID).Error
	})
	if err == nil {
		*run = moved
		run.position = position
	}
	return err
}

func (r *Run) count(deferred []bool) {
	for _, d := range deferred {
		if d {
			r.Deferred++
			continue
		}
		r.PutBack++
	}
}

const sqlitePickedSQL = `
SELECT
	count(*) FILTER (WHERE d.is_processed AND d.error IS NULL),
	count(*) FILTER (WHERE d.is_processed AND d.error IS NOT NULL)
FROM datasets AS d
WHERE d.id IN (SELECT value FROM json_each(@ids ))
	AND @run IS NOT NULL
	AND %s`

const sqliteKeepAllSQL = `
INSERT INTO history (id, round, run_id, processed_at, version, error, result)
SELECT d.id, d.round, @run , d.processed_at, d.version, d.error, d.result
FROM datasets AS d
WHERE d.id IN (SELECT value FROM json_each(@ids ))
	AND d.is_processed
	AND %s
ON CONFLICT DO NOTHING`

const sqliteLiveSQL = `(NOT d.is_processed AND d.checked_out_by IS NOT NULL AND d.available_at > ` + nowSQL + `)`

// sqlitePutBackSQL leaves a live claim alone and marks the row. An expired claim that
// is put back gets a new token, so that its worker, should it wake, finds its ticket
// stale. A row that waits for its outcome in an earlier run stays that run's.
const sqlitePutBackSQL = `
UPDATE datasets AS d
SET
	is_processed = 0,
	available_at = CASE WHEN ` + sqliteLiveSQL + ` THEN d.available_at ELSE 0 END,
	checkouts = d.checkouts + CASE WHEN ` + sqliteLiveSQL + ` OR d.is_processed OR d.checked_out_by IS NULL THEN 0 ELSE 1 END,
	checked_out_by = CASE WHEN ` + sqliteLiveSQL + ` THEN d.checked_out_by END,
	attempts = CASE WHEN ` + sqliteLiveSQL + ` THEN d.attempts ELSE 0 END,
	losses = CASE WHEN ` + sqliteLiveSQL + ` THEN d.losses ELSE 0 END,
	refunds = CASE WHEN ` + sqliteLiveSQL + ` THEN d.refunds ELSE 0 END,
	round = d.round + CASE WHEN ` + sqliteLiveSQL + ` THEN 0 ELSE 1 END,
	last_error = CASE WHEN ` + sqliteLiveSQL + ` THEN d.last_error END,
	run_id = CASE
		WHEN ` + sqliteLiveSQL + ` THEN d.run_id
		WHEN d.is_processed THEN @run
		ELSE coalesce(d.run_id, @run )
	END,
	redo_run = CASE WHEN ` + sqliteLiveSQL + ` THEN @run END
WHERE d.id IN (SELECT value FROM json_each(@ids ))
	AND %s
RETURNING redo_run IS NOT NULL`
