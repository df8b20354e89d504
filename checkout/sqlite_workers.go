package checkout

import (
	"context"
	"database/sql"
	"time"

	"gorm.io/gorm"

	"github.com/windrow-go/windrow/model"
)

// Report stores what a worker tells of itself. It promises to report again within
// next, or, if next is negative, says that it ends. Now and then the worker's tallies
// are summed up on this occasion, and workers that have long been gone forgotten.
func (s *SQLite) Report(ctx context.Context, w model.Worker, next time.Duration) error {
	return s.write(ctx, "report", s.report(w, next))
}

// report is to be run in a transaction, as often as that takes.
func (s *SQLite) report(w model.Worker, next time.Duration) func(tx *gorm.DB) error {
	w.Conflicts = s.registry.conflicts.Load()
	args := append(reportArgs(w), (max(next, 0) + reportSlack).Microseconds(), next < 0)
	tidy := s.registry.untidy()
	return func(tx *gorm.DB) error {
		if err := tx.Exec(sqliteReportSQL, args...).Error; err != nil || !tidy {
			return err
		}
		if err := sqliteFold(tx, w.Holder, foldAfter); err != nil {
			return err
		}
		return sqliteForget(tx)
	}
}

// reportArgs are in the order of workerColumns.
func reportArgs(w model.Worker) []any {
	return []any{w.Holder, w.Host, w.PID, w.Program, w.Version, w.Slots, w.Lease,
		w.InFlight, w.Done, w.Failed, w.Retried, w.Released, w.Lost, w.Conflicts, w.Rate, w.Trouble}
}

const sqliteReportSQL = `
INSERT INTO workers (
	` + workerColumns + `,
	started_at, seen_at, expected_by, stopped_at
)
VALUES (
	?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
	` + nowSQL + `,
	` + nowSQL + `,
	` + nowSQL + ` + ?,
	CASE WHEN ? THEN ` + nowSQL + ` END
)
ON CONFLICT (holder) DO UPDATE
SET
	in_flight = excluded.in_flight,
	done = excluded.done,
	failed = excluded.failed,
	retried = excluded.retried,
	released = excluded.released,
	lost = excluded.lost,
	conflicts = excluded.conflicts,
	rate = excluded.rate,
	trouble = excluded.trouble,
	seen_at = excluded.seen_at,
	expected_by = excluded.expected_by,
	stopped_at = excluded.stopped_at`

// sqliteFold sums a writer's older tallies up to one.
func sqliteFold(tx *gorm.DB, writer string, age time.Duration) error {
	return sqliteMove(tx, writer, `FROM tallies WHERE writer = @writer AND at < `+nowSQL+` - @age `,
		sql.Named("writer", writer), sql.Named("age", age.Microseconds()))
}

// sqliteForget keeps what forgotten workers have done. Whoever is forgotten and comes
// back nevertheless just begins anew.
func sqliteForget(tx *gorm.DB) error {
	var gone []string
	err := tx.Raw(`DELETE FROM workers WHERE expected_by < `+nowSQL+` - ? RETURNING holder`, forgetAfter.Microseconds()).Scan(&gone).Error
	if err != nil || len(gone) == 0 {
		return err
	}
	return sqliteMove(tx, "forgotten", `FROM tallies WHERE writer IN @gone OR writer = 'forgotten'`, sql.Named("gone", gone))
}

// sqliteMove puts one tally of writer in the place of some.
func sqliteMove(tx *gorm.DB, writer, from string, args ...any) error {
	sum := tally{writer: writer}
	row := tx.Raw(`SELECT coalesce(sum(done), 0), coalesce(sum(failed), 0) `+from, args...).Row()
	if err := row.Scan(&sum.done, &sum.failed); err != nil {
		return err
	}
	if err := tx.Exec(`DELETE `+from, args...).Error; err != nil || sum.empty() {
		return err
	}
	return tx.Exec(`INSERT INTO tallies (writer, at, done, failed) VALUES (?, 0, ?, ?)`, sum.writer, sum.done, sum.failed).Error
}

// Workers returns the workers of the last day, the latest first, and the
// database's clock for model.Worker.State.
func (s *SQLite) Workers(ctx context.Context) (workers []model.Worker, now time.Time, err error) {
	err = s.read(ctx, "list the workers", func(tx *gorm.DB) error {
		workers = nil
		var clock int64
		if err := tx.Raw(`SELECT ` + nowSQL).Scan(&clock).Error; err != nil {
			return err
		}
		now = instant(clock)
		var rows []sqliteWorker
		if err := tx.Raw(sqliteWorkersSQL).Scan(&rows).Error; err != nil {
			return err
		}
		for _, row := range rows {
			workers = append(workers, row.worker())
		}
		return nil
	})
	return workers, now, err
}

// sqliteWorker is a worker with its instants as they stand in the file.
type sqliteWorker struct {
	model.Worker
	Started, Seen, Expected int64
	Stopped                 *int64
}

func (w sqliteWorker) worker() model.Worker {
	out := w.Worker
	out.StartedAt, out.SeenAt, out.ExpectedBy = instant(w.Started), instant(w.Seen), instant(w.Expected)
	if w.Stopped != nil {
		at := instant(*w.Stopped)
		out.StoppedAt = &at
	}
	return out
}

const sqliteWorkersSQL = `
SELECT
	` + workerColumns + `,
	started_at AS started,
	seen_at AS seen,
	expected_by AS expected,
	stopped_at AS stopped
FROM workers
WHERE expected_by > ` + nowSQL + ` - 86400000000
ORDER BY started_at DESC, holder`

// Paused tells whether the job is paused: then nobody is to check anything out.
func (s *SQLite) Paused(ctx context.Context) (bool, error) {
	by, err := s.Note(ctx, pausedNote)
	return by != "", err
}

// Pause stops all check-outs from this job until Resume, within a second or so; by
// says who wants it. Rows that are held are worked to their end.
func (s *SQLite) Pause(ctx context.Context, by string) error { return s.SetNote(ctx, pausedNote, by) }

// Resume ends a pause.
func (s *SQLite) Resume(ctx context.Context) error { return s.SetNote(ctx, pausedNote, "") }
