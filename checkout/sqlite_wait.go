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
func (s *SQLite) Agenda(ctx context.Context) (model.Agenda, error) {
	var row struct {
		Next *float64
		Open bool
	}
	err := s.read(ctx, "look ahead", func(tx *gorm.DB) error {
		return tx.Raw(sqliteAgendaSQL).Scan(&row).Error
	})
	if err != nil {
		return model.Agenda{}, err
	}
	return agendaOf(row.Next, row.Open), nil
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

// settleTime lets a burst of writes to the file pass before looking at it.
const settleTime = 20 * time.Millisecond

// Wait returns after d, or soon after another process has written to the file.
// Where files can't be watched it just waits.
func (s *SQLite) Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	var events <-chan fsnotify.Event // nil blocks for ever
	if watcher, err := fsnotify.NewWatcher(); err == nil {
		defer watcher.Close()
		if watcher.Add(filepath.Dir(s.path)) == nil {
			events = watcher.Events
		}
	}
	if agenda, err := s.Agenda(ctx); err != nil {
		return err
	} else if agenda.Next >= 0 && agenda.Next < d {
		timer.Reset(agenda.Next)
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return nil
		case event := <-events:
			if event.Has(fsnotify.Write) && s.isOurs(event.Name) {
				timer.Reset(settleTime)
				events = nil
			}
		}
	}
}

// isOurs tells whether name is the database file or its write-ahead log.
func (s *SQLite) isOurs(name string) bool {
	base := filepath.Base(s.path)
	return filepath.Base(name) == base || filepath.Base(name) == base+"-wal"
}
