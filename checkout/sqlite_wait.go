package checkout

import (
	"context"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"gorm.io/gorm"

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

// Look is Report and Agenda in one transaction. An idle worker asks nothing else of
// the file, unless another process writes to it.
func (s *SQLite) Look(ctx context.Context, w model.Worker, next time.Duration) (model.Agenda, error) {
	var agenda model.Agenda
	report := s.report(w, next)
	err := s.write(ctx, "look ahead", func(tx *gorm.DB) (err error) {
		if agenda, err = sqliteAgenda(tx); err != nil {
			return err
		}
		return report(tx)
	})
	return agenda, err
}

// sqliteAgendaSQL asks for a first row instead of EXISTS, which would be planned as
// a scan of the whole table once most of it is processed.
const sqliteAgendaSQL = `
SELECT
	(
		SELECT (available_at - ` + nowSQL + `) / 1e6
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
	// settleTime lets a burst of writes to the file pass before looking at it.
	settleTime = 20 * time.Millisecond
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
	if watcher, err := fsnotify.NewWatcher(); err == nil {
		defer watcher.Close()
		if watcher.Add(filepath.Dir(s.path)) == nil {
			events = watcher.Events
		}
	}
	var again time.Time // when to look once more; zero: not at all
	for {
		began := time.Now()
		agenda, err := s.Agenda(ctx)
		if err != nil {
			return err
		}
		took := time.Since(began)
		if agenda.Next >= 0 {
			deadline = earliest(deadline, began.Add(agenda.Next))
		}
		until := deadline
		if !again.IsZero() {
			until = earliest(deadline, again)
		}
		written, err := s.awaitWrite(ctx, events, until)
		switch {
		case err != nil:
			return err
		case !written && until.Equal(deadline):
			return nil
		case !written:
			again = time.Time{}
			continue
		}
		again = time.Now().Add(lateCommit)
		pause := max(settleTime, lookShare*took) // others may be writing all the time
		if err := sleep(ctx, min(pause, time.Until(deadline))); err != nil {
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

// awaitWrite tells whether somebody wrote to the file before the deadline.
func (s *SQLite) awaitWrite(ctx context.Context, events <-chan fsnotify.Event, deadline time.Time) (bool, error) {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-timer.C:
			return false, nil
		case event := <-events:
			if event.Has(fsnotify.Write) && s.isOurs(event.Name) {
				return true, nil
			}
		}
	}
}

// isOurs tells whether name is the database file or its write-ahead log.
func (s *SQLite) isOurs(name string) bool {
	base := filepath.Base(s.path)
	return filepath.Base(name) == base || filepath.Base(name) == base+"-wal"
}
