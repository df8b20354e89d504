package schedule

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// start begins a run that is due, and enters its successor.
//
// With a lease, the lock of the holder's session is missing: instead, the same lock is
// taken for the transaction, which shows that no session has it. So it doesn't matter
// which way another scheduler has come by its lock.
func (s *Postgres) start(ctx context.Context, c candidate, holder string, lease time.Duration) (started, error) {
	var out started
	err := s.write(ctx, "start a run of "+c.Schedule, func(tx postgresTx) error {
		var err error
		out, err = tx.start(c, holder, lease)
		return err
	})
	if violates(err, "running_schedule_runs_idx") {
		return started{outcome: occupied}, nil
	}
	return out, err
}

func (tx postgresTx) start(c candidate, holder string, lease time.Duration) (started, error) {
	out := started{outcome: occupied}
	if lease > 0 {
		free, err := tx.noSessionHas(tx.store.lockKey(c.Lock, c.ID))
		if err != nil || !free {
			return out, err
		}
	}
	var err error
	if out.abandoned, err = tx.abandon(c.Lock, holder); err != nil {
		return out, err
	}
	run, schedule, found, err := tx.startable(c.ID)
	if err != nil {
		return out, err
	}
	if !found {
		out.outcome = lostRace
		return out, nil
	}
	now, err := tx.now()
	if err != nil {
		return out, err
	}
	out.outcome, out.schedule = begun, schedule
	sql := beginSQL
	if isMissed(schedule, run, now) {
		out.outcome, sql = skipped, skipSQL
	}
	args := pgx.NamedArgs{"id": c.ID, "holder": holder, "lock": schedule.lock(), "lease": nullable(lease)}
	after, _, err := first(tx, sql, args, scanRun)
	if err != nil {
		return out, err
	}
	out.run = *after
	if !run.OnDemand {
		_, err = tx.succeed(schedule, schedule.Rule.Next(run.DueAt, now), holder)
	}
	return out, err
}

// isMissed tells whether a run that is due is to be skipped.
func isMissed(s Schedule, r *Run, now time.Time) bool {
	return s.Missed == Skip && !r.OnDemand && now.Sub(r.DueAt) > MissedAfter
}

// nullable is a lease in seconds; nil: there is none.
func nullable(lease time.Duration) *float64 {
	if lease <= 0 {
		return nil
	}
	seconds := lease.Seconds()
	return &seconds
}

// noSessionHas takes an advisory lock until the transaction ends.
func (tx postgresTx) noSessionHas(key int64) (bool, error) {
	free, _, err := first(tx, `SELECT pg_try_advisory_xact_lock(@key)`, pgx.NamedArgs{"key": key}, pgx.RowTo[bool])
	return free, err
}

// abandon marks the run that has a lock, if its holder is gone: no session has the
// advisory lock but the caller's.
func (tx postgresTx) abandon(lock *string, by string) ([]int64, error) {
	if lock == nil {
		return nil, nil
	}
	return all(tx, abandonSQL+`
	AND lock = @lock
RETURNING id`, pgx.NamedArgs{"lock": lock, "by": by}, pgx.RowTo[int64])
}

const abandonSQL = `
UPDATE {schema}.schedule_runs
SET
	state = 'abandoned',
	finished_at = {now},
	lease_until = NULL,
	abandoned_by = @by,
	error = 'its holder, ' || holder || ', was gone'
WHERE state = 'running'
	AND (lease_until IS NULL OR lease_until <= {now})`

// startable locks a run that is due and waits, with its schedule.
func (tx postgresTx) startable(id int64) (*Run, Schedule, bool, error) {
	run, found, err := first(tx, startableSQL, pgx.NamedArgs{"id": id}, scanRun)
	if err != nil || !found {
		return nil, Schedule{}, false, err
	}
	schedule, err := tx.lockSchedule(run.Schedule)
	return run, schedule, err == nil, err
}

// startableSQL passes a run by that somebody else is just starting.
const startableSQL = `
SELECT {run}
FROM {schema}.schedule_runs AS r
JOIN {schema}.schedules AS s ON s.name = r.schedule
WHERE r.id = @id
	AND r.state = 'waiting'
	AND r.due_at <= {now}
	AND s.paused_at IS NULL
FOR UPDATE OF r SKIP LOCKED`

const beginSQL = `
UPDATE {schema}.schedule_runs AS r
SET
	state = 'running',
	started_at = {now},
	holder = @holder,
	lock = @lock,
	lease_until = {now} + make_interval(secs => CAST(@lease AS double precision))
WHERE r.id = @id
RETURNING {run}`

const skipSQL = `
UPDATE {schema}.schedule_runs AS r
SET
	state = 'skipped',
	finished_at = {now},
	error = 'its time was missed'
WHERE r.id = @id
RETURNING {run}`

// keep tells which runs are still holder's, and renews their leases.
func (s *Postgres) keep(ctx context.Context, holder string, lease time.Duration) ([]kept, error) {
	sql := keepSQL
	if lease > 0 {
		sql = renewSQL
	}
	var runs []kept
	err := s.write(ctx, "keep runs", func(tx postgresTx) error {
		found, err := all(tx, sql, pgx.NamedArgs{"holder": holder, "lease": nullable(lease)}, pgx.RowToStructByPos[kept])
		runs = found
		return err
	})
	return runs, err
}

const keepSQL = `
SELECT id, coalesce(cancelled_by, '')
FROM {schema}.schedule_runs
WHERE state = 'running' AND holder = @holder`

const renewSQL = `
UPDATE {schema}.schedule_runs
SET lease_until = {now} + make_interval(secs => CAST(@lease AS double precision))
WHERE state = 'running' AND holder = @holder
RETURNING id, coalesce(cancelled_by, '')`

// finish stores how a run ended.
func (s *Postgres) finish(ctx context.Context, holder string, e ending) (bool, error) {
	var stored bool
	err := s.write(ctx, "store how a run ended", func(tx postgresTx) error {
		n, err := tx.run(finishSQL, pgx.NamedArgs{
			"id":          e.id,
			"holder":      holder,
			"state":       e.state,
			"exit_status": e.exitStatus,
			"error":       e.err,
			"output":      e.output,
			"by":          e.by,
		})
		if err != nil {
			return err
		}
		stored = n == 1
		return tx.announce()
	})
	return stored, err
}

// finishSQL: the holder has the last word only as long as nobody has found it gone.
const finishSQL = `
UPDATE {schema}.schedule_runs
SET
	state = @state,
	finished_at = {now},
	lease_until = NULL,
	exit_status = @exit_status,
	error = nullif(@error, ''),
	output = nullif(@output, ''),
	abandoned_by = nullif(@by, '')
WHERE id = @id
	AND state = 'running'
	AND holder = @holder`

// reap marks a run as abandoned, if its holder is gone.
func (s *Postgres) reap(ctx context.Context, h held, by string) (bool, error) {
	if h.Leased {
		return false, nil
	}
	var abandoned bool
	err := s.write(ctx, "look after a run of "+h.Holder, func(tx postgresTx) error {
		abandoned = false
		free, err := tx.noSessionHas(s.lockKey(h.Lock, h.ID))
		if err != nil || !free {
			return err
		}
		n, err := tx.run(abandonSQL+`
	AND id = @id`, pgx.NamedArgs{"id": h.ID, "by": by})
		if err != nil || n == 0 {
			return err
		}
		abandoned = true
		return tx.announce()
	})
	return abandoned, err
}
