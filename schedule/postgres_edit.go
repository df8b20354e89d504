package schedule

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Add makes a schedule and enters its first run.
func (s *Postgres) Add(ctx context.Context, schedule Schedule) (Run, error) {
	schedule = schedule.withDefaults()
	if err := schedule.validate(); err != nil {
		return Run{}, err
	}
	var run Run
	err := s.write(ctx, "add "+schedule.Name, func(tx postgresTx) error {
		added, err := tx.add(schedule)
		run = added
		return err
	})
	return run, err
}

func (tx postgresTx) add(schedule Schedule) (Run, error) {
	now, err := tx.now()
	if err != nil {
		return Run{}, err
	}
	due, err := schedule.firstDue(now)
	if err != nil {
		return Run{}, err
	}
	command, err := commandText(schedule.Command)
	if err != nil {
		return Run{}, err
	}
	n, err := tx.run(addScheduleSQL, pgx.NamedArgs{
		"name":       schedule.Name,
		"rule":       schedule.Rule.String(),
		"timezone":   schedule.Rule.Zone(),
		"lock":       schedule.lock(),
		"timeout":    schedule.Timeout.Seconds(),
		"missed":     schedule.Missed,
		"command":    command,
		"function":   schedule.Function,
		"created_by": schedule.CreatedBy,
	})
	switch {
	case err != nil:
		return Run{}, err
	case n == 0:
		return Run{}, ErrExists
	}
	run, err := tx.succeed(schedule, due, schedule.CreatedBy)
	switch {
	case err != nil:
		return Run{}, err
	case run == nil:
		return Run{}, ErrTaken
	}
	return *run, tx.announce()
}

const addScheduleSQL = `
INSERT INTO {schema}.schedules (name, rule, timezone, lock, timeout, missed, command, function, created_by)
VALUES (@name, @rule, @timezone, @lock, @timeout, @missed, CAST(@command AS jsonb), nullif(@function, ''), @created_by)
ON CONFLICT DO NOTHING`

// firstDue is when the first run of a new schedule is due.
func (s Schedule) firstDue(now time.Time) (time.Time, error) {
	due := s.At.Truncate(time.Microsecond)
	switch {
	case s.In > 0:
		return now.Add(s.In.Truncate(time.Microsecond)), nil
	case due.IsZero():
		return s.Rule.first(now), nil
	}
	if !due.After(now) {
		return due, fmt.Errorf("%s: %w", due.UTC().Format(time.RFC3339), ErrPast)
	}
	return due, nil
}

// commandText is a command as JSON; nil: there is none.
func commandText(command []string) (*string, error) {
	if len(command) == 0 {
		return nil, nil
	}
	encoded, err := json.Marshal(command)
	text := string(encoded)
	return &text, err
}

// succeed enters a regular run at due, or at the first time of the rule after it for
// which there was none yet, and returns it; nil: there is no such time, or a regular
// run waits already.
func (tx postgresTx) succeed(schedule Schedule, due time.Time, by string) (*Run, error) {
	for range successorTries {
		if due.IsZero() {
			return nil, nil
		}
		run, entered, err := tx.enter(schedule.Name, due, by)
		if err != nil || entered {
			return run, err
		}
		waits, _, err := first(tx, regularWaitsSQL, pgx.NamedArgs{"name": schedule.Name}, pgx.RowTo[bool])
		if err != nil || waits {
			return nil, err
		}
		due = schedule.Rule.Next(due, due)
	}
	return nil, fmt.Errorf("schedule %s: its next %d times are taken", schedule.Name, successorTries)
}

// successorTries bounds how many times that are taken are passed over. There are
// such times when a clock was set back, or runs ahead were cancelled.
const successorTries = 10_000

const regularWaitsSQL = `
SELECT EXISTS (
	SELECT 1
	FROM {schema}.schedule_runs
	WHERE schedule = @name AND state = 'waiting' AND NOT on_demand
)`

// enter enters a regular run; false: there is one for that time, or one that waits.
func (tx postgresTx) enter(name string, due time.Time, by string) (*Run, bool, error) {
	return first(tx, enterSQL, pgx.NamedArgs{"name": name, "due": due, "on_demand": false, "by": by}, scanRun)
}

const enterSQL = `
INSERT INTO {schema}.schedule_runs AS r (schedule, due_at, on_demand, created_by)
VALUES (@name, @due, @on_demand, @by)
ON CONFLICT DO NOTHING
RETURNING {run}`

// lockSchedule keeps a schedule from being removed until the transaction ends.
func (tx postgresTx) lockSchedule(name string) (Schedule, error) {
	row, found, err := first(tx, lockScheduleSQL, pgx.NamedArgs{"name": name}, scanSchedule)
	switch {
	case err != nil:
		return Schedule{}, err
	case !found:
		return Schedule{}, noSchedule(name)
	}
	return row.whole()
}

const lockScheduleSQL = `
SELECT {schedule}
FROM {schema}.schedules AS s
WHERE s.name = @name
FOR KEY SHARE`

func noSchedule(name string) error { return fmt.Errorf("schedule %s: %w", name, ErrNotFound) }

func noRun(id int64) error { return fmt.Errorf("run %d: %w", id, ErrNotFound) }

// Enter enters a regular run of a schedule at a time.
func (s *Postgres) Enter(ctx context.Context, name string, at time.Time, by string) (Run, error) {
	at = at.Truncate(time.Microsecond)
	var run Run
	err := s.write(ctx, "enter a run", func(tx postgresTx) error {
		if _, err := tx.lockSchedule(name); err != nil {
			return err
		}
		now, err := tx.now()
		if err != nil {
			return err
		}
		if !at.After(now) {
			return fmt.Errorf("%s: %w", at.UTC().Format(time.RFC3339), ErrPast)
		}
		entered, ok, err := tx.enter(name, at, by)
		if err != nil {
			return err
		}
		if !ok {
			waits, _, err := first(tx, regularWaitsSQL, pgx.NamedArgs{"name": name}, pgx.RowTo[bool])
			return refusal(waits, err)
		}
		run = *entered
		return tx.announce()
	})
	return run, err
}

// refusal is why a regular run was not entered.
func refusal(waits bool, err error) error {
	switch {
	case err != nil:
		return err
	case waits:
		return ErrWaiting
	}
	return ErrTaken
}

// RunNow enters an on-demand run.
func (s *Postgres) RunNow(ctx context.Context, name, by string) (Run, error) {
	var run Run
	err := s.write(ctx, "run now", func(tx postgresTx) error {
		if _, err := tx.lockSchedule(name); err != nil {
			return err
		}
		now, err := tx.now()
		if err != nil {
			return err
		}
		args := pgx.NamedArgs{"name": name, "due": now, "on_demand": true, "by": by}
		entered, ok, err := first(tx, enterSQL, args, scanRun)
		switch {
		case err != nil:
			return err
		case !ok:
			return ErrWaiting
		}
		run = *entered
		return tx.announce()
	})
	return run, err
}

// Cancel ends a waiting run, and asks the holder of a running one to stop it.
func (s *Postgres) Cancel(ctx context.Context, id int64, by string) (Run, error) {
	var run Run
	err := s.write(ctx, "cancel", func(tx postgresTx) error {
		before, found, err := first(tx, lockRunSQL, pgx.NamedArgs{"id": id}, scanRun)
		switch {
		case err != nil:
			return err
		case !found:
			return noRun(id)
		case before.State != Waiting && before.State != Running:
			return fmt.Errorf("run %d is %s: %w", id, before.State, ErrFinished)
		}
		after, _, err := first(tx, cancelSQL, pgx.NamedArgs{"id": id, "by": by}, scanRun)
		if err != nil {
			return err
		}
		if after.State == Cancelled && !after.OnDemand {
			if err := tx.afterCancel(after, by); err != nil {
				return err
			}
		}
		run = *after
		return tx.announce()
	})
	return run, err
}

// afterCancel enters the successor of a regular run that will not start.
func (tx postgresTx) afterCancel(run *Run, by string) error {
	schedule, err := tx.lockSchedule(run.Schedule)
	if err != nil {
		return err
	}
	now, err := tx.now()
	if err != nil {
		return err
	}
	_, err = tx.succeed(schedule, schedule.Rule.Next(run.DueAt, now), by)
	return err
}

const lockRunSQL = `
SELECT {run}
FROM {schema}.schedule_runs AS r
WHERE r.id = @id
FOR UPDATE`

const cancelSQL = `
UPDATE {schema}.schedule_runs AS r
SET
	state = CASE WHEN state = 'waiting' THEN 'cancelled' ELSE state END,
	finished_at = CASE WHEN state = 'waiting' THEN {now} END,
	cancelled_by = coalesce(cancelled_by, @by)
WHERE r.id = @id
RETURNING {run}`

// Pause keeps further runs of a schedule from starting.
func (s *Postgres) Pause(ctx context.Context, name, by string) error {
	return s.change(ctx, "pause", name, pauseSQL, pgx.NamedArgs{"by": by})
}

const pauseSQL = `
UPDATE {schema}.schedules
SET
	paused_at = coalesce(paused_at, {now}),
	paused_by = coalesce(paused_by, @by)
WHERE name = @name`

// Resume undoes Pause.
func (s *Postgres) Resume(ctx context.Context, name string) error {
	return s.change(ctx, "resume", name, resumeSQL, pgx.NamedArgs{})
}

const resumeSQL = `
UPDATE {schema}.schedules
SET paused_at = NULL, paused_by = NULL
WHERE name = @name`

// Remove ends a schedule.
func (s *Postgres) Remove(ctx context.Context, name string) error {
	return s.change(ctx, "remove", name, removeSQL, pgx.NamedArgs{}, forgetSQL)
}

const removeSQL = `
DELETE FROM {schema}.schedules
WHERE name = @name`

// forgetSQL leaves no run ahead that would keep a new schedule of that name from its
// time.
const forgetSQL = `
DELETE FROM {schema}.schedule_runs
WHERE schedule = @name
	AND (state = 'waiting' OR (started_at IS NULL AND due_at > {now}))`

// change carries statements about one schedule out; the first must find it.
func (s *Postgres) change(ctx context.Context, op, name, sql string, args pgx.NamedArgs, more ...string) error {
	args["name"] = name
	return s.write(ctx, op, func(tx postgresTx) error {
		n, err := tx.run(sql, args)
		switch {
		case err != nil:
			return err
		case n == 0:
			return noSchedule(name)
		}
		for _, sql := range more {
			if _, err := tx.run(sql, args); err != nil {
				return err
			}
		}
		return tx.announce()
	})
}
