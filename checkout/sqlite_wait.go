package checkout

import (
	"context"
	"time"

	"github.com/fsnotify/fsnotify"
	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/model"
)

// Agenda tells a worker that found nothing what there is to wait for.
func (s *SQLite) Agenda(ctx context.Context) (agenda model.Agenda, err error) {
	err = s.read(ctx, "look ahead", func(tx *gorm.DB) (err error) {
		agenda, err = sqliteAgenda(tx)
		return err
	})
	return agenda, err
}

func sqliteAgenda(tx *gorm.DB) (model.Agenda, error) {
	var row struct {
		Next *float64
		Open bool
	}
	err := tx.Raw(sqliteAgendaSQL).Scan(&row).Error
	return agendaOf(row.Next, row.Open), err
}

// Look is Report and Agenda in one transaction. A report is a write, which wakes all
// others that wait. So a worker that has been idle for a while reports about every
// quietFor only, and all do so at the same time.
func (s *SQLite) Look(ctx context.Context, w model.Worker, next time.Duration) (agenda model.Agenda, covered time.Duration, err error) {
	if w.Rate == 0 && w.InFlight == 0 {
		next = untilAllReport(time.Now(), next)
	}
	report := s.report(w, next)
	err = s.write(ctx, "look ahead", func(tx *gorm.DB) (err error) {
		if agenda, err = sqliteAgenda(tx); err != nil {
			return err
		}
		return report(tx)
	})
	return agenda, next, err
}

// quietFor is the time between two moments at which idle workers report.
const quietFor = 5 * time.Minute

// untilAllReport is the time from now until the next moment at which idle workers
// report, by the clock of the machine that they share; at least as long as given.
func untilAllReport(now time.Time, least time.Duration) time.Duration {
	at := now.Truncate(quietFor)
	for at.Sub(now) < least {
		at = at.Add(quietFor)
	}
	return at.Sub(now)
}

// sqliteAgendaSQL asks for a first row instead of EXISTS, which would be planned as
// a scan of the whole table once most of it is processed. The clock that rows are
// compared with goes by milliseconds: a row comes due with the first that is not before
// its time.
const sqliteAgendaSQL = `
SELECT
	(
		SELECT ((available_at + 999) / 1000 * 1000 - ` + nowSQL + `) / 1e6
		FROM datasets
		WHERE NOT is_processed
		ORDER BY available_at, id
		LIMIT 1
	) AS next,
	(
		SELECT 1
		FROM datasets
		WHERE NOT is_processed
			AND (available_at <= ` + nowSQL + `
				OR checked_out_by IS NOT NULL
				OR attempts > 0
				OR losses > 0
				OR last_error IS NOT NULL)
		ORDER BY available_at, id
		LIMIT 1
	) IS NOT NULL AS open`

const (
	// settleTime lets a burst of writes to the file pass before looking at it. It is
	// doubled, up to longestSettle, while they go on: others may be writing all the time.
	settleTime, longestSettle = 20 * time.Millisecond, 60 * time.Millisecond
	// lateCommit is when it is looked once more after a write: what is written to the
	// log can be read only when the disk has it, which may take longer than settleTime.
	lateCommit = time.Second
)

// Wait returns after d, or soon after another process has written something to the file
// that makes a row available earlier than that. Where files can't be watched it just
// waits.
func (s *SQLite) Wait(ctx context.Context, d time.Duration) error {
	deadline := time.Now().Add(d)
	var events <-chan fsnotify.Event // nil blocks for ever
	if watcher, err := database.WatchSQLite(s.path); err == nil {
		defer watcher.Close()
		events = watcher.Events
	}
	var pause time.Duration
	var again time.Time // when to look once more; zero: not at all
	for {
		began := time.Now()
		agenda, err := s.Agenda(ctx)
		if err != nil {
			return err
		}
		took := time.Since(began)
		if agenda.Next >= 0 {
			// Counted from the answer on: who comes too early finds nothing.
			deadline = earliest(deadline, time.Now().Add(agenda.Next))
		}
		until := deadline
		if !again.IsZero() {
			until = earliest(deadline, again)
		}
		what, err := awaitWrite(ctx, events, until)
		switch {
		case err != nil:
			return err
		case what.Has(fsnotify.Remove), what == 0 && until.Equal(deadline):
			return nil
		case what == 0:
			again = time.Time{}
			continue
		}
		if pause = min(2*pause, longestSettle); again.IsZero() {
			pause = settleTime
		}
		again = time.Now().Add(lateCommit)
		if err := sleep(ctx, min(max(pause, lookShare*took), time.Until(deadline))); err != nil {
			return err
		}
		drain(events)
	}
}

// drain reads the rest of a burst of events. Nobody has read them while it passed, so
// that the system could make one of many that are alike: a process that waits is not
// woken for every page that others write.
func drain(events <-chan fsnotify.Event) {
	const most, quiet = 16, time.Millisecond
	for range most {
		select {
		case <-events:
		case <-time.After(quiet):
			return
		}
	}
}

// awaitWrite waits until somebody writes to the file, or removes its log, which is then
// no longer watched. It returns 0 at the deadline.
func awaitWrite(ctx context.Context, events <-chan fsnotify.Event, deadline time.Time) (fsnotify.Op, error) {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-timer.C:
			return 0, nil
		case event := <-events:
			if event.Has(fsnotify.Write | fsnotify.Remove) {
				return event.Op, nil
			}
		}
	}
}
