package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/windrow-go/windrow/model"
)

const (
	// callTimeout bounds a call of the store's. It is not cut off by a stop: whether a
	// run was started has to be known.
	callTimeout = 30 * time.Second
	// longestTrouble is the longest wait before the database is asked again.
	longestTrouble = 15 * time.Second
	// soon is the first wait for a lock that is just being given back, and for a run
	// that somebody else is just starting.
	soon = 20 * time.Millisecond
	// stopPatience is how long runs that were told to stop are waited for, and with
	// them for a database that is away.
	stopPatience = 40 * time.Second
)

// engine is one Serve or Tick. Its fields belong to the goroutine that runs it; runs
// have goroutines of their own and report by ended.
type engine struct {
	store  Store
	opts   Options
	log    *zap.Logger
	tie    link // nil: not opened, or lost
	active map[int64]*active
	ended  chan *active
	until  time.Time // a tick starts only what was due by then
	ticked Ticked

	trouble   time.Duration  // the latest wait for the database
	contended time.Duration  // the latest wait for a lock
	warned    bool           // of runs that it may not start
	broken    map[int64]bool // runs that can't be started, of which the log has been told

	storing context.Context // done when it is no longer tried to store how runs have ended
	giveUp  context.CancelFunc
}

func newEngine(store Store, opts Options) *engine {
	storing, giveUp := context.WithCancel(context.Background())
	return &engine{
		store:  store,
		opts:   opts,
		log:    opts.Logger.With(zap.String("holder", opts.Holder)),
		active: map[int64]*active{},
		ended:  make(chan *active, opts.Concurrency),
		broken: map[int64]bool{},

		storing: storing,
		giveUp:  giveUp,
	}
}

// call bounds the time of a call of the store's.
func call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
}

func (e *engine) serve(ctx context.Context) error {
	for ctx.Err() == nil {
		pause, err := e.serveOnce(ctx)
		if err != nil {
			if pause = e.afterTrouble(err); pause == 0 {
				return err
			}
		}
		e.wait(ctx, pause)
	}
	return nil
}

// mayPass tells whether an error is of a database that is away.
func mayPass(err error) bool {
	return errors.Is(err, model.ErrUnavailable) || errors.Is(err, ErrLockLost) || errors.Is(err, context.DeadlineExceeded)
}

// afterTrouble is how long to wait before the database is asked again; zero: never.
func (e *engine) afterTrouble(err error) time.Duration {
	if !mayPass(err) {
		return 0
	}
	if e.trouble == 0 {
		e.log.Warn("the database is unavailable; runs are not started until it is back", zap.Error(err))
	}
	e.trouble = min(max(2*e.trouble, 200*time.Millisecond), longestTrouble)
	return e.trouble
}

// serveOnce does what there is to do now, and returns how long there will be nothing.
func (e *engine) serveOnce(ctx context.Context) (time.Duration, error) {
	if err := e.connect(ctx); err != nil {
		return 0, err
	}
	a, progress, err := e.turn(ctx)
	if err != nil {
		return 0, err
	}
	if e.trouble > 0 {
		e.log.Info("the database is back")
		e.trouble = 0
	}
	if a.notAllowed > 0 && !e.warned {
		e.warned = true
		e.log.Warn("runs are due that this scheduler may not, or can't, run", zap.Int64("runs", a.notAllowed))
	}
	return e.pause(a, progress), nil
}

// progress is what a turn has brought.
type progress struct {
	begun, skipped, abandoned, lost, occupied int
}

// turn looks for what there is to do, and does it.
func (e *engine) turn(ctx context.Context) (agenda, progress, error) {
	var p progress
	e.settle()
	if err := e.keep(ctx); err != nil {
		return agenda{}, p, err
	}
	q := e.opts.question()
	q.until = e.until
	calling, cancel := call(ctx)
	a, err := e.store.look(calling, q)
	cancel()
	if err != nil {
		return a, p, err
	}
	if p.abandoned, err = e.reap(ctx, a.held); err != nil {
		return a, p, err
	}
	for _, c := range a.due {
		if len(e.active) >= e.opts.Concurrency || ctx.Err() != nil {
			break
		}
		if err := e.tryStart(ctx, c, &p); err != nil {
			return a, p, err
		}
	}
	e.ticked.Abandoned += p.abandoned
	return a, p, nil
}

func (e *engine) tryStart(ctx context.Context, c candidate, p *progress) error {
	outcome, err := e.start(ctx, c)
	switch {
	case err == nil:
	case mayPass(err):
		return err
	default: // somebody has written to the tables by hand; others are not to suffer
		outcome = occupied
		if !e.broken[c.ID] {
			e.log.Error("a run could not be started", zap.String("schedule", c.Schedule), zap.Int64("run", c.ID), zap.Error(err))
		}
		e.broken[c.ID] = true
	}
	switch outcome {
	case begun:
		p.begun++
	case skipped:
		p.skipped++
	case lostRace:
		p.lost++
	case occupied:
		p.occupied++
	}
	return nil
}

// pause is how long there is nothing to do, unless there is news.
func (e *engine) pause(a agenda, p progress) time.Duration {
	full := len(e.active) >= e.opts.Concurrency
	pause := e.tie.patience()
	switch {
	case full: // the end of a run is waited for
	case p.begun+p.skipped+p.abandoned > 0:
		e.contended = 0
		return 0
	case p.lost+p.occupied > 0:
		e.contended = min(max(2*e.contended, soon), pollEvery)
		pause = min(pause, e.contended)
	default:
		e.contended = 0
	}
	if a.next >= 0 && !full {
		pause = min(pause, a.next)
	}
	if len(e.active) > 0 {
		pause = min(pause, e.keepEvery())
	}
	if len(a.held) > len(e.active) { // somebody else's: they may be gone soon
		pause = min(pause, e.opts.Lease/2)
	}
	return pause
}

// keepEvery is how often runs are looked after.
func (e *engine) keepEvery() time.Duration { return e.opts.Lease / 6 }

// wait returns after a while, or as soon as there is news or a run has ended.
func (e *engine) wait(ctx context.Context, pause time.Duration) {
	if pause <= 0 || ctx.Err() != nil {
		return
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	var news, lost <-chan struct{}
	if e.tie != nil && e.tie.lost().Err() == nil {
		news, lost = e.tie.news(), e.tie.lost().Done()
	}
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-news:
	case <-lost:
	case a := <-e.ended:
		e.forget(a)
	}
}

// settle forgets the runs that have ended.
func (e *engine) settle() {
	for {
		select {
		case a := <-e.ended:
			e.forget(a)
		default:
			return
		}
	}
}

func (e *engine) forget(a *active) {
	delete(e.active, a.run.ID)
	if a.state != Done {
		e.ticked.Failed++
	}
}

// connect opens the link, again if it was lost.
func (e *engine) connect(ctx context.Context) error {
	if e.tie != nil && e.tie.lost().Err() == nil {
		return nil
	}
	if e.tie != nil {
		e.log.Warn("the connection that holds the locks was lost", zap.Error(context.Cause(e.tie.lost())), zap.Int("runs told to stop", len(e.active)))
		e.tie.close()
		e.tie = nil
	}
	calling, cancel := call(ctx)
	defer cancel()
	tie, err := e.store.link(calling)
	if err != nil {
		return err
	}
	e.tie = tie
	return nil
}

// tick starts what is due when it begins, as far as locks are free. After an error it
// starts nothing more, and waits for what it has started.
func (e *engine) tick(ctx context.Context) error {
	for ctx.Err() == nil {
		again, err := e.tickOnce(ctx)
		if err != nil {
			e.log.Error("nothing more is started", zap.Error(err), zap.Int("runs", len(e.active)))
			for len(e.active) > 0 && ctx.Err() == nil {
				e.watch(ctx, e.keepEvery())
			}
			return err
		}
		if !again && len(e.active) == 0 {
			return nil
		}
		if !again {
			e.wait(ctx, e.keepEvery())
		}
	}
	return nil
}

// watch looks after runs for a while, and starts none.
func (e *engine) watch(ctx context.Context, pause time.Duration) {
	e.wait(ctx, pause)
	e.settle()
	if err := e.keep(ctx); err != nil {
		e.log.Debug("runs could not be looked after", zap.Error(err))
	}
}

// tickOnce tells whether to look again at once. It connects only if something is due.
func (e *engine) tickOnce(ctx context.Context) (bool, error) {
	if e.until.IsZero() {
		calling, cancel := call(ctx)
		a, err := e.store.look(calling, e.opts.question())
		cancel()
		if err != nil {
			return false, err
		}
		e.until = a.now
		e.ticked.Blocked, e.ticked.NotAllowed = a.blocked, a.notAllowed
		if len(a.due) == 0 && len(a.held) == 0 {
			return false, nil
		}
	}
	if err := e.connect(ctx); err != nil {
		return false, err
	}
	a, p, err := e.turn(ctx)
	if err != nil {
		return false, err
	}
	e.ticked.Blocked, e.ticked.NotAllowed = a.blocked+int64(p.occupied), a.notAllowed
	if p.lost > 0 {
		e.wait(ctx, soon)
	}
	return p.begun+p.skipped+p.abandoned+p.lost > 0 && len(e.active) < e.opts.Concurrency, nil
}

// leave gives the runs that go on the grace period, then tells them to stop, and lets
// go of the database.
func (e *engine) leave(ctx context.Context) error {
	err := e.windDown(context.WithoutCancel(ctx))
	e.giveUp()
	if e.tie != nil {
		e.tie.close()
	}
	return err
}

func (e *engine) windDown(ctx context.Context) error {
	if len(e.active) > 0 {
		e.log.Info("waiting for runs to end", zap.Int("runs", len(e.active)), zap.Duration("grace", e.opts.Grace))
	}
	e.watchUntil(ctx, time.Now().Add(e.opts.Grace))
	for _, a := range e.active {
		a.stop(ErrStopped)
	}
	e.watchUntil(ctx, time.Now().Add(stopPatience))
	if len(e.active) > 0 {
		return fmt.Errorf("%d runs have not stopped, or how they have ended could not be stored", len(e.active))
	}
	return nil
}

// watchUntil looks after runs until all have ended, or it is time.
func (e *engine) watchUntil(ctx context.Context, deadline time.Time) {
	for len(e.active) > 0 && time.Now().Before(deadline) {
		e.watch(ctx, min(time.Until(deadline), e.keepEvery()))
	}
}
