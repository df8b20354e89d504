package checkout

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/internal/txn"
	"github.com/windrow-go/windrow/model"
)

// Agenda tells a worker that found nothing what there is to wait for. While others
// hold rows of a large table, the exact answer is often too dear: then it is to look
// again after a second.
func (s *Postgres) Agenda(ctx context.Context) (model.Agenda, error) { return s.agendaAnd(ctx) }

// agendaAnd sends further statements along.
func (s *Postgres) agendaAnd(ctx context.Context, besides ...txn.Statement) (model.Agenda, error) {
	var held []bool
	newest := txn.Statement{SQL: s.sql.newest, Rows: into(&held)}
	err := s.inOneTrip(ctx, "look ahead", append([]txn.Statement{{SQL: byIndexSQL}, newest}, besides...)...)
	switch {
	case err != nil:
		return model.Agenda{}, err
	case len(held) == 0:
		return model.Agenda{Next: -1}, nil
	case held[0] && s.walker.large() && !s.agenda.due():
		return model.Agenda{Next: shortWait, Open: true}, nil
	}
	return s.exactAgenda(ctx)
}

func (s *Postgres) exactAgenda(ctx context.Context, besides ...txn.Statement) (model.Agenda, error) {
	began := time.Now()
	var agenda model.Agenda
	look := txn.Statement{SQL: s.sql.agenda, Rows: func(rows pgx.Rows) error {
		var next *float64
		var open bool
		err := scanRow(rows, &next, &open)
		agenda = agendaOf(next, open)
		return err
	}}
	err := s.inOneTrip(ctx, "look ahead", append([]txn.Statement{{SQL: byIndexSQL}, look}, besides...)...)
	s.agenda.made(time.Since(began))
	return agenda, err
}

// Look is Report and Agenda in one. An idle worker asks nothing else of the server:
// one round trip, of one transaction, and two where the table is large.
func (s *Postgres) Look(ctx context.Context, w model.Worker, next time.Duration) (agenda model.Agenda, covered time.Duration, err error) {
	if s.walker.large() {
		agenda, err = s.agendaAnd(ctx, s.report(w, next)...)
	} else {
		agenda, err = s.exactAgenda(ctx, s.report(w, next)...)
	}
	return agenda, next, err
}

// looks paces exact looks at the agenda.
type looks struct {
	mu   sync.Mutex
	next time.Time // the next may be made from then on
}

// due tells whether an exact look may be made. The first time it is asked after a
// while, a worker has only just found nothing, and the others may be done soon.
func (l *looks) due() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Sub(l.next) > time.Minute {
		l.next = now.Add(5 * shortWait)
	}
	return now.After(l.next)
}

func (l *looks) made(took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next = time.Now().Add(lookShare * took)
}

const (
	// shortWait is until when a worker looks again that could not look exactly.
	shortWait = time.Second
	// deafWait is so short that nothing is missed by not listening.
	deafWait = 50 * time.Millisecond
)

// newestSQL tells whether the row that comes due last is held. In the tail of a
// table that is one of the last claims, and found at once, while the first row that
// comes due stands behind the index entries of all rows finished lately.
const newestSQL = `
SELECT checked_out_by IS NOT NULL AND available_at > statement_timestamp()
FROM {schema}.datasets
WHERE NOT is_processed
ORDER BY available_at DESC, id DESC
LIMIT 1`

// agendaOf takes the seconds until the next row becomes available, if any waits.
func agendaOf(next *float64, open bool) model.Agenda {
	if next == nil {
		return model.Agenda{Next: -1}
	}
	seconds := min(max(0, *next), farOff.Seconds())
	return model.Agenda{Next: time.Duration(seconds * float64(time.Second)), Open: open}
}

// farOff is as good as for ever; a time.Duration is no good for more than 292 years.
const farOff = 100 * 365 * 24 * time.Hour

// agendaSQL asks for a first row instead of EXISTS, which would be planned as a
// scan of the whole table once most of it is processed.
const agendaSQL = `
SELECT
	(
		SELECT CAST(extract(epoch FROM available_at - statement_timestamp()) AS double precision)
		FROM {schema}.datasets
		WHERE NOT is_processed
		ORDER BY available_at, id
		LIMIT 1
	) AS next,
	(
		SELECT true
		FROM {schema}.datasets
		WHERE NOT is_processed
			AND (available_at <= statement_timestamp()
				OR checked_out_by IS NOT NULL
				OR attempts > 0
				OR losses > 0
				OR last_error IS NOT NULL)
		ORDER BY available_at, id
		LIMIT 1
	) IS NOT NULL AS open`

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// announce wakes workers that wait. It is for rare events only: NOTIFY takes a
// lock at COMMIT that all databases of the server share, so check-out and
// check-in never do it.
func (s *Postgres) announce(ctx context.Context) error {
	err := s.db.WithContext(ctx).Exec(`NOTIFY ` + s.channel).Error
	if err != nil {
		return fmt.Errorf("announce rows: %w", database.Translate(err))
	}
	return nil
}
