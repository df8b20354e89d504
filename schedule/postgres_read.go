package schedule

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// List returns all schedules in the order of their names.
func (s *Postgres) List(ctx context.Context) ([]Overview, error) {
	return s.overviews(ctx, "list schedules", listSQL, listLastSQL, nil)
}

// Get returns one schedule.
func (s *Postgres) Get(ctx context.Context, name string) (Overview, error) {
	found, err := s.overviews(ctx, "show schedule", getSQL, getLastSQL, pgx.NamedArgs{"name": name})
	if err != nil {
		return Overview{}, err
	}
	if len(found) == 0 {
		return Overview{}, noSchedule(name)
	}
	return found[0], nil
}

func (s *Postgres) overviews(ctx context.Context, op, schedulesSQL, lastSQL string, args pgx.NamedArgs) ([]Overview, error) {
	var now []time.Time
	var rows []*scheduleRow
	var waiting, running, last []*Run
	err := s.read(ctx, op,
		statement(s, `SELECT {now}`, args, pgx.RowTo[time.Time], &now),
		statement(s, schedulesSQL, args, scanSchedule, &rows),
		statement(s, waitingSQL, args, scanWaiting, &waiting),
		statement(s, runningSQL, args, scanRun, &running),
		statement(s, lastSQL, args, scanRun, &last))
	if err != nil {
		return nil, err
	}
	return assemble(now[0], rows, append(waiting, running...), last), nil
}

// assemble joins schedules with their runs.
func assemble(now time.Time, rows []*scheduleRow, open, last []*Run) []Overview {
	known := newRules()
	overviews := make([]Overview, len(rows))
	places := make(map[string]*Overview, len(rows))
	for i, row := range rows {
		overviews[i] = row.overview(known)
		overviews[i].Now = now
		places[row.Name] = &overviews[i]
	}
	occupants := map[string]*Run{}
	for _, run := range open {
		if run.State == Running && run.Lock != "" {
			occupants[run.Lock] = run
		}
		place, ours := places[run.Schedule]
		switch {
		case !ours: // another schedule is asked about, or it was removed
		case run.State == Running:
			place.Running = run
		case run.OnDemand:
			place.Asked = run
		default:
			place.Next = run
		}
	}
	for _, run := range last {
		if place, ours := places[run.Schedule]; ours {
			place.Last = run
		}
	}
	for i := range overviews {
		overviews[i].Occupant = occupants[overviews[i].Lock]
	}
	return overviews
}

const listSQL = `
SELECT {schedule}
FROM {schema}.schedules AS s
ORDER BY s.name`

const getSQL = `
SELECT {schedule}
FROM {schema}.schedules AS s
WHERE s.name = @name`

// waitingSQL reads the runs that wait, of one schedule or of all: these are many, and
// have little to tell.
const waitingSQL = `
SELECT r.id, r.schedule, r.on_demand, r.due_at, r.created_at, r.created_by
FROM {schema}.schedule_runs AS r
WHERE r.state = 'waiting' AND r.schedule = coalesce(CAST(@name AS text), r.schedule)`

func scanWaiting(row pgx.CollectableRow) (*Run, error) {
	r := &Run{State: Waiting}
	err := row.Scan(r.waitingFields()...)
	return r, err
}

// waitingFields are where the columns of a run that waits go.
func (r *Run) waitingFields() []any {
	return []any{&r.ID, &r.Schedule, &r.OnDemand, &r.DueAt, &r.CreatedAt, &r.CreatedBy}
}

// runningSQL reads all that are running: others may have the schedule's lock.
const runningSQL = `
SELECT {brief}
FROM {schema}.schedule_runs AS r
WHERE r.state = 'running'`

// listLastSQL looks a schedule's latest run up in the index, schedule by schedule: as a
// join by id it might be planned as a scan of the whole history.
const listLastSQL = `
SELECT l.*
FROM {schema}.schedules AS s
CROSS JOIN LATERAL (
	SELECT {brief}
	FROM {schema}.schedule_runs AS r
	WHERE r.schedule = s.name AND r.finished_at IS NOT NULL
	ORDER BY r.finished_at DESC, r.id DESC
	LIMIT 1
) AS l`

const getLastSQL = listLastSQL + `
WHERE s.name = @name`

// Run returns one run.
func (s *Postgres) Run(ctx context.Context, id int64) (Run, error) {
	var runs []*Run
	err := s.read(ctx, "show run", statement(s, runSQL, pgx.NamedArgs{"id": id}, scanRun, &runs))
	if err != nil {
		return Run{}, err
	}
	if len(runs) == 0 {
		return Run{}, noRun(id)
	}
	return *runs[0], nil
}

const runSQL = `
SELECT {run}
FROM {schema}.schedule_runs AS r
WHERE r.id = @id`

// History returns finished runs of a schedule, the latest first.
func (s *Postgres) History(ctx context.Context, name string, n int) ([]Run, error) {
	var runs []*Run
	var known []bool
	args := pgx.NamedArgs{"name": name, "limit": n}
	err := s.read(ctx, "history",
		statement(s, historySQL, args, scanRun, &runs),
		statement(s, scheduleKnownSQL, args, pgx.RowTo[bool], &known))
	if err != nil {
		return nil, err
	}
	if len(runs) == 0 && !known[0] {
		return nil, noSchedule(name)
	}
	return values(runs), nil
}

func values(runs []*Run) []Run {
	out := make([]Run, len(runs))
	for i, run := range runs {
		out[i] = *run
	}
	return out
}

const historySQL = `
SELECT {run}
FROM {schema}.schedule_runs AS r
WHERE r.schedule = @name AND r.finished_at IS NOT NULL
ORDER BY r.finished_at DESC, r.id DESC
LIMIT @limit`

const scheduleKnownSQL = `SELECT EXISTS (SELECT 1 FROM {schema}.schedules WHERE name = @name)`

// look tells a scheduler what there is to do.
func (s *Postgres) look(ctx context.Context, q question) (agenda, error) {
	var now []time.Time
	var next []float64
	a := agenda{next: -1}
	args := q.postgresArgs()
	err := s.read(ctx, "look for due runs",
		statement(s, `SELECT {now}`, args, pgx.RowTo[time.Time], &now),
		statement(s, dueSQL, args, pgx.RowToStructByPos[candidate], &a.due),
		statement(s, nextDueSQL, args, pgx.RowTo[float64], &next),
		statement(s, heldSQL, args, pgx.RowToStructByPos[held], &a.held))
	if err != nil {
		return agenda{}, err
	}
	a.now = now[0]
	if len(next) > 0 {
		a.next = time.Duration(next[0] * float64(time.Second))
	}
	if len(a.due) == 0 {
		err = s.countBlocked(ctx, args, &a)
	}
	return a, err
}

func (q question) postgresArgs() pgx.NamedArgs {
	args := pgx.NamedArgs{"commands": q.commands, "functions": q.functions, "until": nil}
	if !q.until.IsZero() {
		args["until"] = q.until
	}
	return args
}

// countBlocked counts the due runs that can't be started.
func (s *Postgres) countBlocked(ctx context.Context, args pgx.NamedArgs, a *agenda) error {
	var counts [][2]int64
	scan := func(row pgx.CollectableRow) (c [2]int64, err error) {
		err = row.Scan(&c[0], &c[1])
		return c, err
	}
	err := s.read(ctx, "look for due runs", statement(s, blockedSQL, args, scan, &counts))
	if err == nil {
		a.blocked, a.notAllowed = counts[0][0], counts[0][1]
	}
	return err
}

// postgresAbleSQL tells what this scheduler may run.
const postgresAbleSQL = `((s.command IS NOT NULL AND CAST(@commands AS boolean))
		OR s.function = ANY(CAST(@functions AS text[])))`

const dueSQL = `
SELECT r.id, r.schedule, s.lock
FROM {schema}.schedule_runs AS r
JOIN {schema}.schedules AS s ON s.name = r.schedule
WHERE r.state = 'waiting'
	AND r.due_at <= least({now}, CAST(@until AS timestamptz))
	AND s.paused_at IS NULL
	AND {able}
	AND NOT EXISTS (
		SELECT 1
		FROM {schema}.schedule_runs AS h
		WHERE h.state = 'running' AND h.lock = s.lock
	)
ORDER BY r.due_at, r.id
LIMIT 100`

const nextDueSQL = `
SELECT CAST(extract(epoch FROM r.due_at - {now}) AS double precision)
FROM {schema}.schedule_runs AS r
JOIN {schema}.schedules AS s ON s.name = r.schedule
WHERE r.state = 'waiting'
	AND r.due_at > {now}
	AND s.paused_at IS NULL
	AND {able}
ORDER BY r.due_at, r.id
LIMIT 1`

const heldSQL = `
SELECT r.id, r.holder, r.lock, r.lease_until IS NOT NULL AND r.lease_until > {now}
FROM {schema}.schedule_runs AS r
WHERE r.state = 'running'`

const blockedSQL = `
SELECT count(*) FILTER (WHERE {able}), count(*) FILTER (WHERE NOT coalesce({able}, false))
FROM {schema}.schedule_runs AS r
JOIN {schema}.schedules AS s ON s.name = r.schedule
WHERE r.state = 'waiting'
	AND r.due_at <= least({now}, CAST(@until AS timestamptz))
	AND s.paused_at IS NULL`
