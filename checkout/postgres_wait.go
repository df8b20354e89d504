package checkout

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/internal/txn"
	"github.com/windrow-go/windrow/model"
)

// Agenda tells a worker that found nothing what there is to wait for. While others
// hold rows of a large table, the exact answer is often too dear: then it is to look
// again after a second.
func (s *Postgres) Agenda(ctx context.Context) (model.Agenda, error) {
	var held []bool
	err := s.inOneTrip(ctx, "look ahead", txn.Statement{SQL: byIndexSQL}, txn.Statement{SQL: s.sql.newest, Rows: into(&held)})
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

func (s *Postgres) exactAgenda(ctx context.Context) (model.Agenda, error) {
	began := time.Now()
	var agenda model.Agenda
	err := s.inOneTrip(ctx, "look ahead", txn.Statement{SQL: byIndexSQL}, txn.Statement{
		SQL: s.sql.agenda,
		Rows: func(rows pgx.Rows) error {
			var next *float64
			var open bool
			rows.Next()
			err := rows.Scan(&next, &open)
			agenda = agendaOf(next, open)
			return err
		},
	})
	s.agenda.made(time.Since(began))
	return agenda, err
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

// shortWait is not worth listening.
const shortWait = time.Second

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
	return model.Agenda{Next: max(0, time.Duration(*next*float64(time.Second))), Open: open}
}

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

// Wait returns after d, or as soon as rows are added or given back, or when an
// earlier row turns up while it begins to listen; for a second or less it does not
// listen. Behind a pooler in transaction
// mode nothing can be heard, and it just waits.
func (s *Postgres) Wait(ctx context.Context, d time.Duration) error {
	if d <= shortWait {
		return sleep(ctx, d)
	}
	pool, err := s.db.DB()
	if err != nil {
		return err
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		return explain("wait", err)
	}
	defer conn.Close()
	err = conn.Raw(func(driverConn any) error {
		return s.listen(ctx, driverConn.(*stdlib.Conn).Conn(), d)
	})
	return explain("wait", err)
}

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

func (s *Postgres) listen(ctx context.Context, conn *pgx.Conn, d time.Duration) error {
	deadline := time.Now().Add(d)
	if _, err := conn.Exec(ctx, `LISTEN `+s.channel); err != nil {
		return err
	}
	defer s.unlisten(ctx, conn)
	var next *float64
	var open bool
	if err := conn.QueryRow(ctx, s.sql.agenda).Scan(&next, &open); err != nil {
		return err
	}
	if sooner := agendaOf(next, open).Next; sooner >= 0 && time.Now().Add(sooner).Before(deadline) {
		deadline = time.Now().Add(sooner)
	}
	heard, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	_, err := conn.WaitForNotification(heard)
	if err != nil && !(errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil) {
		return err
	}
	return nil
}

// unlisten leaves the connection as it was for whoever gets it next, even when the
// wait was cut off; a connection that doesn't answer any more is closed.
func (s *Postgres) unlisten(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if _, err := conn.Exec(ctx, `UNLISTEN `+s.channel); err != nil {
		_ = conn.Close(ctx)
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
