package schedule

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"
)

// List returns all schedules in the order of their names.
func (s *SQLite) List(ctx context.Context) ([]Overview, error) {
	return s.overviews(ctx, "list schedules", sqliteListSQL, sqliteWaitingSQL, sqliteListLastSQL, nil)
}

// Get returns one schedule.
func (s *SQLite) Get(ctx context.Context, name string) (Overview, error) {
	found, err := s.overviews(ctx, "show schedule", sqliteGetSQL, sqliteWaitingOneSQL, sqliteGetLastSQL, named{"name": name})
	if err != nil {
		return Overview{}, err
	}
	if len(found) == 0 {
		return Overview{}, noSchedule(name)
	}
	return found[0], nil
}

func (s *SQLite) overviews(ctx context.Context, op, schedulesSQL, waitingSQL, lastSQL string, args named) ([]Overview, error) {
	var overviews []Overview
	err := s.read(ctx, op, func(tx sqliteTx) error {
		now, err := tx.now()
		if err != nil {
			return err
		}
		rows, err := allIn(tx, schedulesSQL, args, scanFileSchedule)
		if err != nil {
			return err
		}
		waiting, err := allIn(tx, waitingSQL, args, scanFileWaiting)
		if err != nil {
			return err
		}
		running, err := allIn(tx, sqliteRunningSQL, nil, scanFileRun)
		if err != nil {
			return err
		}
		last, err := allIn(tx, lastSQL, args, scanFileRun)
		if err != nil {
			return err
		}
		overviews = assemble(now, rows, append(waiting, running...), last)
		return nil
	})
	return overviews, err
}

const sqliteListSQL = `
SELECT {schedule}
FROM schedules AS s
ORDER BY s.name`

const sqliteGetSQL = `
SELECT {schedule}
FROM schedules AS s
WHERE s.name = @name`

// sqliteWaitingSQL: these are many, and have little to tell.
const sqliteWaitingSQL = `
SELECT r.id, r.schedule, r.on_demand, r.due_at, r.created_at, r.created_by
FROM schedule_runs AS r
WHERE r.state = 'waiting'`

const sqliteWaitingOneSQL = sqliteWaitingSQL + ` AND r.schedule = @name`

func scanFileWaiting(rows *sql.Rows) (*Run, error) {
	r := &Run{State: Waiting}
	var due, created int64
	fields := r.waitingFields()
	fields[3], fields[4] = &due, &created
	err := rows.Scan(fields...)
	r.DueAt, r.CreatedAt = instant(due), instant(created)
	return r, err
}

// sqliteRunningSQL reads all that are running: others may have the schedule's lock.
const sqliteRunningSQL = `
SELECT {brief}
FROM schedule_runs AS r
WHERE r.state = 'running'`

const sqliteListLastSQL = `
SELECT {brief}
FROM schedules AS s
JOIN schedule_runs AS r ON r.id = (
	SELECT l.id
	FROM schedule_runs AS l
	WHERE l.schedule = s.name AND l.finished_at IS NOT NULL
	ORDER BY l.finished_at DESC, l.id DESC
	LIMIT 1
)`

const sqliteGetLastSQL = sqliteListLastSQL + `
WHERE s.name = @name`

// Run returns one run.
func (s *SQLite) Run(ctx context.Context, id int64) (Run, error) {
	run := new(Run)
	err := s.read(ctx, "show run", func(tx sqliteTx) error {
		found, ok, err := firstIn(tx, sqliteRunSQL, named{"id": id}, scanFileRun)
		switch {
		case err != nil:
			return err
		case !ok:
			return noRun(id)
		}
		run = found
		return nil
	})
	return *run, err
}

const sqliteRunSQL = `
SELECT {run}
FROM schedule_runs AS r
WHERE r.id = @id`

// History returns finished runs of a schedule, the latest first.
func (s *SQLite) History(ctx context.Context, name string, n int) ([]Run, error) {
	var runs []Run
	err := s.read(ctx, "history", func(tx sqliteTx) error {
		found, err := allIn(tx, sqliteHistorySQL, named{"name": name, "limit": n}, scanFileRun)
		if err == nil && len(found) == 0 {
			_, err = tx.schedule(name)
		}
		runs = values(found)
		return err
	})
	return runs, err
}

const sqliteHistorySQL = `
SELECT {run}
FROM schedule_runs AS r
WHERE r.schedule = @name AND r.finished_at IS NOT NULL
ORDER BY r.finished_at DESC, r.id DESC
LIMIT @limit`

// look tells a scheduler what there is to do.
func (s *SQLite) look(ctx context.Context, q question) (agenda, error) {
	args, err := q.sqliteArgs()
	if err != nil {
		return agenda{}, err
	}
	var a agenda
	err = s.read(ctx, "look for due runs", func(tx sqliteTx) error {
		found, err := tx.look(args)
		a = found
		return err
	})
	return a, err
}

func (tx sqliteTx) look(args named) (a agenda, err error) {
	if a.now, err = tx.now(); err != nil {
		return a, err
	}
	if a.due, err = allIn(tx, sqliteDueSQL, args, scanCandidate); err != nil {
		return a, err
	}
	next, waits, err := firstIn(tx, sqliteNextDueSQL, args, value[int64])
	if err != nil {
		return a, err
	}
	a.next = time.Duration(next) * time.Microsecond
	if !waits {
		a.next = -1
	}
	if a.held, err = allIn(tx, sqliteHeldSQL, args, scanHeld); err != nil || len(a.due) > 0 {
		return a, err
	}
	counts, _, err := firstIn(tx, sqliteBlockedSQL, args, scanPair)
	a.blocked, a.notAllowed = counts[0], counts[1]
	return a, err
}

func (q question) sqliteArgs() (named, error) {
	functions, err := json.Marshal(append([]string{}, q.functions...))
	args := named{"commands": q.commands, "functions": string(functions), "until": nil}
	if !q.until.IsZero() {
		args["until"] = q.until.UnixMicro()
	}
	return args, err
}

func scanCandidate(rows *sql.Rows) (c candidate, err error) {
	err = rows.Scan(&c.ID, &c.Schedule, &c.Lock)
	return c, err
}

func scanHeld(rows *sql.Rows) (h held, err error) {
	err = rows.Scan(&h.ID, &h.Holder, &h.Lock, &h.Leased)
	return h, err
}

func scanPair(rows *sql.Rows) (pair [2]int64, err error) {
	err = rows.Scan(&pair[0], &pair[1])
	return pair, err
}

// sqliteAbleSQL tells what this scheduler may run.
const sqliteAbleSQL = `((s.command IS NOT NULL AND @commands )
		OR coalesce(s.function IN (SELECT value FROM json_each(@functions)), false))`

const sqliteDueSQL = `
SELECT r.id, r.schedule, s.lock
FROM schedule_runs AS r
JOIN schedules AS s ON s.name = r.schedule
WHERE r.state = 'waiting'
	AND r.due_at <= min({now}, coalesce(@until, {now}))
	AND s.paused_at IS NULL
	AND {able}
	AND NOT EXISTS (
		SELECT 1
		FROM schedule_runs AS h
		WHERE h.state = 'running' AND h.lock = s.lock
	)
ORDER BY r.due_at, r.id
LIMIT 100`

const sqliteNextDueSQL = `
SELECT r.due_at - {now}
FROM schedule_runs AS r
JOIN schedules AS s ON s.name = r.schedule
WHERE r.state = 'waiting'
	AND r.due_at > {now}
	AND s.paused_at IS NULL
	AND {able}
ORDER BY r.due_at, r.id
LIMIT 1`

const sqliteHeldSQL = `
SELECT r.id, r.holder, r.lock, coalesce(r.lease_until > {now}, false)
FROM schedule_runs AS r
WHERE r.state = 'running'`

const sqliteBlockedSQL = `
SELECT count(*) FILTER (WHERE {able}), count(*) FILTER (WHERE NOT {able})
FROM schedule_runs AS r
JOIN schedules AS s ON s.name = r.schedule
WHERE r.state = 'waiting'
	AND r.due_at <= min({now}, coalesce(@until, {now}))
	AND s.paused_at IS NULL`
