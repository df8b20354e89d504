package checkout

import (
	"context"
	"database/sql"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// ear is a connection of the pool on which the server tells of added rows. It is kept
// from one wait to the next, so that an idle worker asks for nothing while it waits,
// and given back when the worker has been busy for a while: nobody reads from it then.
type ear struct {
	conn *sql.Conn
	used time.Time // when it last served a wait
}

// earRest is how long an ear is kept that no wait has used.
const earRest = 5 * time.Second

// Wait returns after d, or as soon as rows are added or given back, or when an
// earlier row turns up while it begins to listen. In a large table, where the last rows
// are waited for by short waits, these don't begin to listen. Behind a pooler in
// transaction mode nothing can be heard, and it just waits.
func (s *Postgres) Wait(ctx context.Context, d time.Duration) error {
	deadline := time.Now().Add(d)
	if d <= deafWait {
		return sleep(ctx, d)
	}
	e := s.ear.Swap(nil) // so that another Wait at the same time has one of its own
	if e == nil && d <= shortWait && s.walker.large() {
		return sleep(ctx, d)
	}
	if e == nil {
		var sooner time.Duration
		var err error
		if e, sooner, err = s.listen(ctx); err != nil {
			return explain("wait", err)
		}
		if sooner >= 0 {
			deadline = earliest(deadline, time.Now().Add(sooner))
		}
	}
	if err := e.hear(ctx, deadline); err != nil {
		e.drop()
		return explain("wait", err)
	}
	e.used = time.Now()
	if !s.ear.CompareAndSwap(nil, e) {
		s.unlisten(e)
	}
	return ctx.Err()
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// listen opens an ear, and then looks how long it is until the next row is available:
// one that was added before was not heard. It is negative if no row waits.
func (s *Postgres) listen(ctx context.Context) (e *ear, next time.Duration, err error) {
	pool, err := s.db.DB()
	if err != nil {
		return nil, 0, err
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, 0, err
	}
	e = &ear{conn: conn}
	err = e.raw(func(c *pgx.Conn) error {
		if _, err := c.Exec(ctx, `LISTEN `+s.channel); err != nil {
			return err
		}
		var seconds *float64
		var open bool
		err := c.QueryRow(ctx, s.sql.agenda).Scan(&seconds, &open)
		next = agendaOf(seconds, open).Next
		return err
	})
	if err != nil {
		e.drop()
		return nil, 0, err
	}
	return e, next, nil
}

// hear waits for a notification until the deadline, or until ctx ends. What else there
// is to be heard then tells nothing new.
func (e *ear) hear(ctx context.Context, deadline time.Time) error {
	return e.raw(func(c *pgx.Conn) error {
		heard, err := next(ctx, c, deadline)
		for heard && err == nil {
			heard, err = next(ctx, c, time.Now().Add(time.Millisecond))
		}
		return err
	})
}

// next reads one notification, if there is one until the deadline and before ctx ends.
func next(ctx context.Context, c *pgx.Conn, deadline time.Time) (bool, error) {
	limited, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	_, err := c.WaitForNotification(limited)
	if err != nil && limited.Err() != nil && !c.IsClosed() {
		return false, nil // the connection is as good as before
	}
	return err == nil, err
}

func (e *ear) raw(do func(c *pgx.Conn) error) error {
	return e.conn.Raw(func(driverConn any) error { return do(driverConn.(*stdlib.Conn).Conn()) })
}

// drop closes the connection.
func (e *ear) drop() {
	_ = e.raw(func(c *pgx.Conn) error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		return c.Close(ctx)
	})
	_ = e.conn.Close()
}

// restEar gives the ear back if it has not served a wait for a while, or at once.
func (s *Postgres) restEar(atOnce bool) {
	e := s.ear.Swap(nil)
	if e == nil {
		return
	}
	if !atOnce && time.Since(e.used) < earRest && s.ear.CompareAndSwap(nil, e) {
		return
	}
	s.unlisten(e)
}

// unlisten leaves the connection as it was for whoever gets it next; one that doesn't
// answer any more is closed.
func (s *Postgres) unlisten(e *ear) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := e.raw(func(c *pgx.Conn) error {
		_, err := c.Exec(ctx, `UNLISTEN `+s.channel)
		for heard := true; heard && err == nil; {
			heard, err = next(ctx, c, time.Unix(0, 0)) // only what has been read by now
		}
		return err
	})
	if err != nil {
		e.drop()
		return
	}
	_ = e.conn.Close() // back to the pool
}
