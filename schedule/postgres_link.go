package schedule

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/windrow-go/windrow/internal/database"
)

const (
	// checkEvery is how often a session is asked whether it is still there, and
	// checkTimeout how long its answer may take: together they are shorter than the
	// time after which the server gives a connection up that has fallen silent.
	checkEvery   = 5 * time.Second
	checkTimeout = 5 * time.Second
	// pollEvery is how often to look where nothing can be heard.
	pollEvery = 5 * time.Second
	// lookEvery is how often to look in case that something was not heard.
	lookEvery = time.Minute
)

// link connects once more, outside the pool, which gives its connections to anybody
// and retires them. Behind a pooler a session is not one: then there is nothing to
// hold on to.
func (s *Postgres) link(ctx context.Context) (link, error) {
	config, err := s.connConfig(ctx)
	if err != nil {
		return nil, explain("connect", err)
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, explain("connect", err)
	}
	own, err := settle(ctx, conn, s.channel)
	if err != nil {
		closeConn(conn)
		return nil, explain("connect", err)
	}
	if !own {
		closeConn(conn)
		return leases{poll: pollEvery}, nil
	}
	return newSession(conn), nil
}

// connConfig is how the pool connects.
func (s *Postgres) connConfig(ctx context.Context) (*pgx.ConnConfig, error) {
	pool, err := s.db.DB()
	if err != nil {
		return nil, err
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	var config *pgx.ConnConfig
	err = conn.Raw(func(driverConn any) error {
		config = driverConn.(*stdlib.Conn).Conn().Config()
		return nil
	})
	return config, err
}

// settle prepares a connection, and tells whether the session is its own: a pooler
// hands out process numbers of its own making.
func settle(ctx context.Context, conn *pgx.Conn, channel string) (bool, error) {
	pid, err := askPID(ctx, conn)
	if err != nil || pid != conn.PgConn().PID() {
		return false, err
	}
	// The server, too, has to notice soon that this end is gone, and with it the
	// locks. What it can't set (a unix socket) it ignores.
	_, err = conn.PgConn().Exec(ctx, sessionSQL+`LISTEN `+channel).ReadAll()
	return true, err
}

const sessionSQL = `
SET tcp_keepalives_idle = 10;
SET tcp_keepalives_interval = 5;
SET tcp_keepalives_count = 4;
SET tcp_user_timeout = 20000;
`

// askPID asks which process serves the connection. It prepares no statement: a
// pooler may stand in between.
func askPID(ctx context.Context, conn *pgx.Conn) (uint32, error) {
	text, err := ask(ctx, conn, `SELECT pg_backend_pid()`)
	if err != nil {
		return 0, err
	}
	pid, err := strconv.ParseUint(text, 10, 32)
	return uint32(pid), err
}

// ask returns the one value that a statement without parameters brings.
func ask(ctx context.Context, conn *pgx.Conn, sql string) (string, error) {
	results, err := conn.PgConn().Exec(ctx, sql).ReadAll()
	if err != nil {
		return "", err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 {
		return "", fmt.Errorf("no answer to %s", sql)
	}
	return string(results[0].Rows[0][0]), nil
}

func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // it is of no further use either way
}

// session is a connection whose advisory locks are a scheduler's. One goroutine has
// the connection: it listens, carries requests out in between, and notices when the
// connection is lost, at once if that is heard, else by a check.
type session struct {
	conn  *pgx.Conn
	alive context.Context // done when the connection is lost, or closed
	lose  context.CancelCauseFunc
	heard chan struct{}
	over  chan struct{} // the goroutine is gone

	mu        sync.Mutex
	queue     []*request
	interrupt context.CancelFunc // ends the wait for news

	locks map[int64]bool // held: the server would grant them again; the goroutine's
}

// request is something to be done with the connection.
type request struct {
	do   func(ctx context.Context) error
	err  error
	done chan struct{}
}

func newSession(conn *pgx.Conn) *session {
	alive, lose := context.WithCancelCause(context.Background())
	s := &session{
		conn:      conn,
		alive:     alive,
		lose:      lose,
		heard:     make(chan struct{}, 1),
		over:      make(chan struct{}),
		interrupt: func() {},
		locks:     map[int64]bool{},
	}
	go s.serve()
	return s
}

func (s *session) serve() {
	defer close(s.over)
	defer closeConn(s.conn)
	for s.alive.Err() == nil {
		if err := s.turn(); err != nil {
			s.lose(fmt.Errorf("%w: %w", ErrLockLost, database.Translate(err)))
		}
	}
}

// turn carries out what was asked for, or else waits for news.
func (s *session) turn() error {
	s.mu.Lock()
	queue := s.queue
	s.queue = nil
	wait, cancel := context.WithTimeout(s.alive, checkEvery)
	defer cancel()
	s.interrupt = cancel
	s.mu.Unlock()
	for _, r := range queue {
		r.err = s.limited(r.do)
		close(r.done)
	}
	if len(queue) > 0 {
		return s.broken()
	}
	_, err := s.conn.WaitForNotification(wait)
	switch {
	case err == nil:
		nudge(s.heard)
		return nil
	case errors.Is(wait.Err(), context.DeadlineExceeded):
		return s.check()
	case wait.Err() != nil:
		return s.broken()
	}
	return err
}

// broken is an error if the driver has given the connection up.
func (s *session) broken() error {
	if s.conn.IsClosed() {
		return errors.New("the connection is closed")
	}
	return nil
}

// check asks whether the session is still there, and the same.
func (s *session) check() error {
	return s.limited(func(ctx context.Context) error {
		pid, err := askPID(ctx, s.conn)
		if err == nil && pid != s.conn.PgConn().PID() {
			err = errors.New("another server process answers")
		}
		return err
	})
}

func (s *session) limited(do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(s.alive, checkTimeout)
	defer cancel()
	return do(ctx)
}

// ask has the goroutine do something with the connection.
func (s *session) ask(ctx context.Context, do func(ctx context.Context) error) error {
	r := &request{do: do, done: make(chan struct{})}
	s.mu.Lock()
	s.queue = append(s.queue, r)
	s.interrupt()
	s.mu.Unlock()
	select {
	case <-r.done:
		return r.err
	case <-s.over:
		return context.Cause(s.alive)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lock takes an advisory lock. One that the caller has given up waiting for may be
// taken nevertheless, until the session ends: it is for a scheduler that stops.
func (s *session) lock(ctx context.Context, key int64) (bool, error) {
	granted := false
	err := s.ask(ctx, func(ctx context.Context) error {
		if s.locks[key] {
			return nil
		}
		answer, err := ask(ctx, s.conn, fmt.Sprintf(`SELECT pg_try_advisory_lock(%d)`, key))
		granted = err == nil && answer == "t"
		s.locks[key] = granted
		return err
	})
	if err != nil {
		return false, explain("lock", err)
	}
	return granted, nil
}

// unlock gives a lock back. If it can't be, the session is lost, and the lock with it.
func (s *session) unlock(key int64) {
	_ = s.ask(context.Background(), func(ctx context.Context) error {
		delete(s.locks, key)
		_, err := ask(ctx, s.conn, fmt.Sprintf(`SELECT pg_advisory_unlock(%d)`, key))
		return err
	})
}

func (s *session) leased() bool            { return false }
func (s *session) lost() context.Context   { return s.alive }
func (s *session) news() <-chan struct{}   { return s.heard }
func (s *session) patience() time.Duration { return lookEvery }

func (s *session) close() {
	s.lose(ErrLockLost)
	<-s.over
}

// nudge leaves word in a channel with room for one.
func nudge(channel chan<- struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}

// leases is the link where nothing can be held on to, or heard.
type leases struct{ poll time.Duration }

func (leases) lock(context.Context, int64) (bool, error) { return true, nil }
func (leases) unlock(int64)                              {}
func (leases) leased() bool                              { return true }
func (leases) lost() context.Context                     { return context.Background() }
func (leases) news() <-chan struct{}                     { return nil }
func (l leases) patience() time.Duration                 { return l.poll }
func (leases) close()                                    {}
