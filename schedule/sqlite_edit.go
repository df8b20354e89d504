package schedule

import (
	"context"
	"fmt"
	"time"
)

// Add makes a schedule and enters its first run.
func (s *SQLite) Add(ctx context.Context, schedule Schedule) (Run, error) {
	schedule = schedule.withDefaults()
	if err := schedule.validate(); err != nil {
		return Run{}, err
	}
	var run Run
	err := s.write(ctx, "add "+schedule.Name, func(tx sqliteTx) error {
		added, err := tx.add(schedule)
		run = added
		return err
	})
	return run, err
}

func (tx sqliteTx) add(schedule Schedule) (Run, error) {
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
	n, err := tx.run(sqliteAddScheduleSQL, named{
		"name":       schedule.Name,
		"rule":       schedule.Rule.String(),
		"timezone":   schedule.Rule.Zone(),
		"lock":       schedule.lock(),
		"timeout":    schedule.Timeout.Seconds(),
		"missed":     string(schedule.Missed),
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
	return *run, nil
}

const sqliteAddScheduleSQL = `
INSERT INTO schedules (name, rule, timezone, lock, timeout, missed, command, function, created_by)
VALUES (@name, @rule, @timezone, @lock, @timeout, @missed, @command, nullif(@function, ''), @created_by)
ON CONFLICT DO NOTHING`

// succeed enters a regular run at due, or at the first time of the rule after it for
// which there was none yet, and returns it; nil: there is no such time, or a regular
// run waits already.
func (tx sqliteTx) succeed(schedule Schedule, due time.Time, by string) (*Run, error) {
	for range successorTries {
		if due.IsZero() {
			return nil, nil
		}
		run, entered, err := tx.enter(schedule.Name, due, false, by)
		if err != nil || entered {
			return run, err
		}
		waits, _, err := firstIn(tx, sqliteRegularWaitsSQL, named{"name": schedule.Name}, value[bool])
		if err != nil || waits {
			return nil, err
		}
		due = schedule.Rule.Next(due, due)
	}
	return nil, fmt.Errorf("schedule %s: its next %d times are taken", schedule.Name, successorTries)
}

const sqliteRegularWaitsSQL = `
SELECT EXISTS (
	SELECT 1
	FROM schedule_runs
	WHERE schedule = @name AND state = 'waiting' AND on_demand = 0
)`

// enter enters a run; false: there is one for that time, or one that waits.
func (tx sqliteTx) enter(name string, due time.Time, onDemand bool, by string) (*Run, bool, error) {
	n, err := tx.run(sqliteEnterSQL, named{"name": name, "due": due.UnixMicro(), "on_demand": onDemand, "by": by})
	if err != nil || n == 0 {
		return nil, false, err
	}
	return firstIn(tx, sqliteEnteredSQL, nil, scanFileRun)
}

const sqliteEnterSQL = `
INSERT INTO schedule_runs (schedule, due_at, on_demand, created_by)
VALUES (@name, @due, @on_demand, @by)
ON CONFLICT DO NOTHING`

const sqliteEnteredSQL = `
SELECT {run}
FROM schedule_runs AS r
WHERE r.id = last_insert_rowid()`

// schedule reads a schedule; the transaction keeps it from being removed.
func (tx sqliteTx) schedule(name string) (Schedule, error) {
	row, found, err := firstIn(tx, sqliteGetSQL, named{"name": name}, scanFileSchedule)
	switch {
	case err != nil:
		return Schedule{}, err
	case !found:
		return Schedule{}, noSchedule(name)
	}
	return row.whole()
}

// Enter enters a regular run of a schedule at a time.
func (s *SQLite) Enter(ctx context.Context, name string, at time.Time, by string) (Run, error) {
	at = at.Truncate(time.Microsecond)
	var run Run
	err := s.write(ctx, "enter a run", func(tx sqliteTx) error {
		if _, err := tx.schedule(name); err != nil {
			return err
		}
		now, err := tx.now()
		if err != nil {
			return err
		}
		if !at.After(now) {
			return fmt.Errorf("%s: %w", at.UTC().Format(time.RFC3339), ErrPast)
		}
		entered, ok, err := tx.enter(name, at, false, by)
		if err != nil {
			return err
		}
		if !ok {
			waits, _, err := firstIn(tx, sqliteRegularWaitsSQL, named{"name": name}, value[bool])
			return refusal(waits, err)
		}
		run = *entered
		return nil
	})
	return run, err
}

// RunNow enters an on-demand run.
func (s *SQLite) RunNow(ctx context.Context, name, by string) (Run, error) {
	var run Run
	err := s.write(ctx, "run now", func(tx sqliteTx) error {
		if _, err := tx.schedule(name); err != nil {
			return err
		}
		now, err := tx.now()
		if err != nil {
			return err
		}
		entered, ok, err := tx.enter(name, now, true, by)
		switch {
		case err != nil:
			return err
		case !ok:
			return ErrWaiting
		}
		run = *entered
		return nil
	})
	return run, err
}

// Cancel ends a waiting run, and asks the holder of a running one to stop it.
func (s *SQLite) Cancel(ctx context.Context, id int64, by string) (Run, error) {
	var run Run
	err := s.write(ctx, "cancel", func(tx sqliteTx) error {
		before, found, err := firstIn(tx, sqliteRunSQL, named{"id": id}, scanFileRun)
		switch {
		case err != nil:
			return err
		case !found:
			return noRun(id)
		case before.State != Waiting && before.State != Running:
			return fmt.Errorf("run %d is %s: %w", id, before.State, ErrFinished)
		}
		if _, err := tx.run(sqliteCancelSQL, named{"id": id, "by": by}); err != nil {
			return err
		}
		after, _, err := firstIn(tx, sqliteRunSQL, named{"id": id}, scanFileRun)
		if err != nil {
			return err
		}
		if after.State == Cancelled && !after.OnDemand {
			if err := tx.afterCancel(after, by); err != nil {
				return err
			}
		}
		run = *after
		return nil
	})
	return run, err
}

// afterCancel enters the successor of a regular run that will not start.
func (tx sqliteTx) afterCancel(run *Run, by string) error {
	schedule, err := tx.schedule(run.Schedule)
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

const sqliteCancelSQL = `
UPDATE schedule_runs
SET
	state = CASE WHEN state = 'waiting' THEN 'cancelled' ELSE state END,
	finished_at = CASE WHEN state = 'waiting' THEN {now} END,
	cancelled_by = coalesce(cancelled_by, @by)
WHERE id = @id`

// Pause keeps further runs of a schedule from starting.
func (s *SQLite) Pause(ctx context.Context, name, by string) error {
	return s.change(ctx, "pause", name, sqlitePauseSQL, named{"by": by})
}

const sqlitePauseSQL = `
UPDATE schedules
SET
	paused_at = coalesce(paused_at, {now}),
	paused_by = coalesce(paused_by, @by)
WHERE name = @name`

// Resume undoes Pause.
func (s *SQLite) Resume(ctx context.Context, name string) error {
	return s.change(ctx, "resume", name, sqliteResumeSQL, named{})
}

const sqliteResumeSQL = `
UPDATE schedules
SET paused_at = NULL, paused_by = NULL
WHERE name = @name`

// Remove ends a schedule.
func (s *SQLite) Remove(ctx context.Context, name string) error {
	return s.change(ctx, "remove", name, sqliteRemoveSQL, named{}, sqliteForgetSQL...)
}

const sqliteRemoveSQL = `
DELETE FROM schedules
WHERE name = @name`

// sqliteForgetSQL leaves no run ahead that would keep a new schedule of that name
// from its time.
var sqliteForgetSQL = []string{`
DELETE FROM schedule_runs
WHERE schedule = @name AND state = 'waiting'`, `
DELETE FROM schedule_runs
WHERE schedule = @name AND finished_at IS NOT NULL AND started_at IS NULL AND due_at > {now}`}

// change carries statements about one schedule out; the first must find it.
func (s *SQLite) change(ctx context.Context, op, name, sql string, args named, more ...string) error {
	args["name"] = name
	return s.write(ctx, op, func(tx sqliteTx) error {
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
		return nil
	})
}
