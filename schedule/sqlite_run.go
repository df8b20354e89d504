package schedule

import (
	"context"
	"database/sql"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/windrow-go/windrow/internal/database"
)

// start begins a run that is due, and enters its successor. The lease is always the
// lock here.
func (s *SQLite) start(ctx context.Context, c candidate, holder string, lease time.Duration) (started, error) {
	var out started
	err := s.write(ctx, "start a run of "+c.Schedule, func(tx sqliteTx) error {
		var err error
		out, err = tx.start(c, holder, lease)
		return err
	})
	return out, err
}

func (tx sqliteTx) start(c candidate, holder string, lease time.Duration) (started, error) {
	var out started
	var err error
	if out.abandoned, err = tx.abandon(c.Lock, holder); err != nil {
		return out, err
	}
	run, found, err := firstIn(tx, sqliteStartableSQL, named{"id": c.ID}, scanFileRun)
	if err != nil || !found {
		return out, err
	}
	if out.schedule, err = tx.schedule(run.Schedule); err != nil {
		return out, err
	}
	now, err := tx.now()
	if err != nil {
		return out, err
	}
	sql := sqliteBeginSQL
	out.outcome = begun
	if isMissed(out.schedule, run, now) {
		out.outcome, sql = skipped, sqliteSkipSQL
	}
	n, err := tx.run(sql, named{"id": c.ID, "holder": holder, "lock": out.schedule.lock(), "lease": lease.Microseconds()})
	if err != nil {
		return out, err
	}
	if n == 0 {
		return started{outcome: occupied, abandoned: out.abandoned}, nil
	}
	after, _, err := firstIn(tx, sqliteRunSQL, named{"id": c.ID}, scanFileRun)
	if err != nil {
		return out, err
	}
	out.run = *after
	if !run.OnDemand {
		_, err = tx.succeed(out.schedule, out.schedule.Rule.Next(run.DueAt, now), holder)
	}
	return out, err
}

// abandon marks the run that has a lock, if its lease has run out.
func (tx sqliteTx) abandon(lock *string, by string) ([]int64, error) {
	if lock == nil {
		return nil, nil
	}
	return allIn(tx, sqliteAbandonSQL+`
	AND lock = @lock
RETURNING id`, named{"lock": lock, "by": by}, value[int64])
}

const sqliteAbandonSQL = `
UPDATE schedule_runs
SET
	state = 'abandoned',
	finished_at = {now},
	lease_until = NULL,
	abandoned_by = @by,
	error = 'its holder, ' || holder || ', was gone'
WHERE state = 'running'
	AND coalesce(lease_until, 0) <= {now}`

const sqliteStartableSQL = `
SELECT {run}
FROM schedule_runs AS r
JOIN schedules AS s ON s.name = r.schedule
WHERE r.id = @id
	AND r.state = 'waiting'
	AND r.due_at <= {now}
	AND s.paused_at IS NULL`

// sqliteBeginSQL changes nothing if the lock is held.
const sqliteBeginSQL = `
UPDATE schedule_runs
SET
	state = 'running',
	started_at = {now},
	holder = @holder,
	lock = @lock,
	lease_until = {now} + @lease
WHERE id = @id
	AND NOT EXISTS (
		SELECT 1
		FROM schedule_runs AS h
		WHERE h.state = 'running' AND h.lock = @lock
	)`

const sqliteSkipSQL = `
UPDATE schedule_runs
SET
	state = 'skipped',
	finished_at = {now},
	error = 'its time was missed'
WHERE id = @id`

// keep renews the leases of holder's runs, and tells which are still its own.
func (s *SQLite) keep(ctx context.Context, holder string, lease time.Duration) ([]kept, error) {
	var runs []kept
	err := s.write(ctx, "keep runs", func(tx sqliteTx) error {
		args := named{"holder": holder, "lease": lease.Microseconds()}
		if _, err := tx.run(sqliteRenewSQL, args); err != nil {
			return err
		}
		found, err := allIn(tx, sqliteKeptSQL, args, scanKept)
		runs = found
		return err
	})
	return runs, err
}

func scanKept(rows *sql.Rows) (k kept, err error) {
	err = rows.Scan(&k.ID, orEmpty{&k.CancelledBy})
	return k, err
}

// sqliteRenewSQL leaves leases alone that have most of their time before them: each
// write is news to all who watch the file.
const sqliteRenewSQL = `
UPDATE schedule_runs
SET lease_until = {now} + @lease
WHERE state = 'running'
	AND holder = @holder
	AND lease_until < {now} + @lease * 2 / 3`

const sqliteKeptSQL = `
SELECT id, cancelled_by
FROM schedule_runs
WHERE state = 'running' AND holder = @holder`

// finish stores how a run ended.
func (s *SQLite) finish(ctx context.Context, holder string, e ending) (bool, error) {
	var stored bool
	err := s.write(ctx, "store how a run ended", func(tx sqliteTx) error {
		n, err := tx.run(sqliteFinishSQL, named{
			"id":          e.id,
			"holder":      holder,
			"state":       string(e.state),
			"exit_status": e.exitStatus,
			"error":       e.err,
			"output":      e.output,
			"by":          e.by,
		})
		stored = n == 1
		return err
	})
	return stored, err
}

// sqliteFinishSQL: the holder has the last word only as long as nobody has found it
// gone.
const sqliteFinishSQL = `
UPDATE schedule_runs
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

// reap marks a run as abandoned, if its lease has run out.
func (s *SQLite) reap(ctx context.Context, h held, by string) (bool, error) {
	if h.Leased {
		return false, nil
	}
	var abandoned bool
	err := s.write(ctx, "look after a run of "+h.Holder, func(tx sqliteTx) error {
		n, err := tx.run(sqliteAbandonSQL+`
	AND id = @id`, named{"id": h.ID, "by": by})
		abandoned = n == 1
		return err
	})
	return abandoned, err
}

// link watches the file for what other processes write. Where files can't be
// watched, it is looked at often.
func (s *SQLite) link(context.Context) (link, error) {
	watcher, err := database.WatchSQLite(s.path)
	if err != nil {
		return leases{poll: pollEvery}, nil
	}
	w := &watched{leases: leases{poll: lookEvery}, watcher: watcher, heard: make(chan struct{}, 1), over: make(chan struct{})}
	go w.serve()
	return w, nil
}

// watched is the link to a file.
type watched struct {
	leases
	watcher *fsnotify.Watcher
	heard   chan struct{}
	over    chan struct{} // the goroutine is gone
}

// After a write was noticed there is news soon, but not too often, since workers may
// write to the same file all the time; and some times more, after longer and longer
// times: what is written can be read only when it is on the disk, and nothing tells
// when that is. The same holds for the beginning: somebody may just be writing.
const (
	settleTime = 20 * time.Millisecond // a burst of writes passes
	newsGap    = 50 * time.Millisecond // at least, from news to news
	lateNews   = 250 * time.Millisecond
	lastNews   = 16 * time.Second
	stretch    = 8
)

func (w *watched) serve() {
	defer close(w.over)
	var soon <-chan time.Time // nil: none is due
	var told time.Time
	following := lateNews
	late := time.NewTimer(following)
	defer late.Stop()
	for {
		select {
		case event, open := <-w.watcher.Events:
			if !open {
				return
			}
			if event.Has(fsnotify.Remove) {
				_ = w.watcher.Add(event.Name) // if it is there anew; else there is still the poll
			} else if !event.Has(fsnotify.Write) {
				continue
			}
			if soon == nil {
				soon = time.After(max(settleTime, newsGap-time.Since(told)))
			}
			following = lateNews
			late.Reset(following)
		case <-w.watcher.Errors: // events were lost
			nudge(w.heard)
		case <-soon:
			soon, told = nil, time.Now()
			nudge(w.heard)
		case <-late.C:
			nudge(w.heard)
			if following *= stretch; following <= lastNews {
				late.Reset(following)
			}
		}
	}
}

func (w *watched) news() <-chan struct{} { return w.heard }

func (w *watched) close() {
	w.watcher.Close()
	<-w.over
}

// lockKey: no session has a lock here.
func (s *SQLite) lockKey(*string, int64) int64 { return 0 }
