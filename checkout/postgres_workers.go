package checkout

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/txn"
	"github.com/windrow-go/windrow/model"
)

// Report stores what a worker tells of itself. It promises to report again within
// next, or, if next is negative, says that it ends. Now and then the worker's tallies
// are summed up on this occasion, and workers that have long been gone forgotten.
func (s *Postgres) Report(ctx context.Context, w model.Worker, next time.Duration) error {
	return s.inOneTrip(ctx, "report", s.report(w, next)...)
}

func (s *Postgres) report(w model.Worker, next time.Duration) []txn.Statement {
	w.Conflicts = s.registry.conflicts.Load()
	statements := []txn.Statement{{SQL: s.sql.report, Args: []any{pgx.NamedArgs{
		"holder": w.Holder, "host": w.Host, "pid": w.PID, "program": w.Program, "version": w.Version, "slots": w.Slots, "lease": w.Lease,
		"in_flight": w.InFlight, "done": w.Done, "failed": w.Failed, "retried": w.Retried, "released": w.Released, "lost": w.Lost,
		"conflicts": w.Conflicts, "rate": w.Rate, "trouble": w.Trouble,
		"next": max(next, 0).Seconds() + reportSlack.Seconds(), "stopped": next < 0,
	}}}}
	if s.registry.untidy() {
		statements = append(statements,
			txn.Statement{SQL: s.sql.fold, Args: []any{pgx.NamedArgs{"writer": w.Holder, "age": foldAfter.Seconds()}}},
			txn.Statement{SQL: s.sql.forget, Args: []any{pgx.NamedArgs{"age": forgetAfter.Seconds()}}})
	}
	return statements
}

const reportSQL = `
INSERT INTO {schema}.workers AS w (
	` + workerColumns + `,
	started_at, seen_at, expected_by, stopped_at
)
VALUES (
	@holder , @host , @pid , @program , @version , @slots , @lease ,
	@in_flight , @done , @failed , @retried , @released , @lost , @conflicts , @rate , @trouble ,
	clock_timestamp(),
	clock_timestamp(),
	clock_timestamp() + make_interval(secs => @next),
	CASE WHEN @stopped THEN clock_timestamp() END
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

// foldSQL sums a writer's older tallies up to one.
const foldSQL = `
WITH old AS (
	DELETE FROM {schema}.tallies
	WHERE writer = @writer
		AND at < clock_timestamp() - make_interval(secs => @age)
	RETURNING done, failed
)
INSERT INTO {schema}.tallies (writer, at, done, failed)
SELECT @writer, TIMESTAMPTZ 'epoch', sum(done), sum(failed)
FROM old
HAVING count(*) > 0`

// forgetSQL keeps what forgotten workers have done. Whoever is forgotten and comes
// back nevertheless just begins anew.
const forgetSQL = `
WITH gone AS (
	DELETE FROM {schema}.workers
	WHERE expected_by < clock_timestamp() - make_interval(secs => @age)
	RETURNING holder
), old AS (
	DELETE FROM {schema}.tallies AS t
	WHERE t.writer IN (SELECT holder FROM gone)
		OR t.writer = 'forgotten' AND EXISTS (SELECT FROM gone)
	RETURNING t.done, t.failed
)
INSERT INTO {schema}.tallies (writer, at, done, failed)
SELECT 'forgotten', TIMESTAMPTZ 'epoch', sum(done), sum(failed)
FROM old
HAVING count(*) > 0`

// Workers returns the workers of the last day, the latest first, and the
// database's clock for model.Worker.State.
func (s *Postgres) Workers(ctx context.Context) (workers []model.Worker, now time.Time, err error) {
	err = txn.Snapshot(ctx, s.db, func(tx *gorm.DB) error {
		workers = nil
		if err := tx.Raw(`SELECT clock_timestamp()`).Scan(&now).Error; err != nil {
			return err
		}
		return tx.Raw(s.sql.workers).Scan(&workers).Error
	})
	return workers, now, explain("list the workers", err)
}

const workersSQL = `
SELECT
	` + workerColumns + `,
	started_at, seen_at, expected_by, stopped_at
FROM {schema}.workers
WHERE expected_by > clock_timestamp() - interval '1 day'
ORDER BY started_at DESC, holder`

// Paused tells whether the job is paused: then nobody is to check anything out.
func (s *Postgres) Paused(ctx context.Context) (bool, error) {
	var by []string
	err := s.inOneTrip(ctx, "look for a pause", txn.Statement{SQL: s.sql.paused, Rows: into(&by)})
	return len(by) > 0, err
}

const pausedSQL = `
SELECT value
FROM {schema}.job
WHERE name = 'paused'
	AND value <> ''`

// Pause stops all check-outs from this job until Resume, within a second or so; by
// says who wants it. Rows that are held are worked to their end.
func (s *Postgres) Pause(ctx context.Context, by string) error { return s.SetNote(ctx, pausedNote, by) }

// Resume ends a pause.
func (s *Postgres) Resume(ctx context.Context) error { return s.SetNote(ctx, pausedNote, "") }
