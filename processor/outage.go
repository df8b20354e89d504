package processor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.uber.org/zap"

	"github.com/windrow-go/windrow/model"
)

// callTimeout bounds one call of the store. A call that takes longer is treated
// as an outage: it is made again.
const callTimeout = 30 * time.Second

// call makes one call of the store.
func call(ctx context.Context, f func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := f(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: no answer within %v: %w", model.ErrUnavailable, callTimeout, err)
	}
	return err
}

// insist makes a call of the store until it gets an answer.
func (w *worker) insist(ctx context.Context, f func(context.Context) error) error {
	for {
		if err := w.outage.await(ctx, renewed); err != nil {
			return err
		}
		err := call(ctx, f)
		if errors.Is(err, model.ErrEffect) || !w.outage.report(err) {
			return err // an effect's own trouble, be it with some other service, is none of the database
		}
	}
}

// phase says what may be done with the database.
type phase int32

const (
	down    phase = iota // nothing; the renewer tries to get through
	renewed              // what is held has been renewed: outcomes may be stored
	up                   // everything; what had been finished has been stored
)

// outage is what claimer, committer and renewer know of the database together.
// Whoever meets an error reports it; the renewer then lifts the phase to renewed,
// the committer to up.
type outage struct {
	log *zap.Logger

	current   atomic.Int32
	mu        sync.Mutex
	changed   chan struct{} // closed and replaced when the phase changes
	since     time.Time
	ended     time.Time                   // the one before
	pauses    *backoff.ExponentialBackOff // between tries; starts afresh after some calm
	began     chan struct{}               // tells the renewer
	recovered chan struct{}               // tells the committer
}

// calm is how long the database must have been well for the next outage to be tried
// at short intervals again. A server that answers and yet has no room for check-outs
// (SQLSTATE 53200) seems well until the next one: it was asked ten times a second.
const calm = 10 * time.Second

func newOutage(log *zap.Logger) *outage {
	o := &outage{
		log:       log,
		changed:   make(chan struct{}),
		began:     make(chan struct{}, 1),
		recovered: make(chan struct{}, 1),
	}
	o.current.Store(int32(up))
	return o
}

func (o *outage) phase() phase { return phase(o.current.Load()) }

// report tells whether err means that the database is out of reach; if so, it
// begins an outage, or sets back the recovery from one.
func (o *outage) report(err error) bool {
	if !errors.Is(err, model.ErrUnavailable) {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.phase() == up {
		o.since = time.Now()
		if o.pauses == nil || o.since.Sub(o.ended) > calm {
			o.pauses = pauses(100*time.Millisecond, 5*time.Second)
		}
		o.log.Warn("the database is out of reach; claiming waits, handlers go on", zap.Error(err))
	}
	if o.phase() != down {
		o.set(down)
		poke(o.began)
	}
	return true
}

// lift moves the phase from one to the next, unless it is another by now.
func (o *outage) lift(from, to phase) {
	if o.phase() != from {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.phase() != from {
		return
	}
	o.set(to)
	if to == renewed {
		poke(o.recovered)
		return
	}
	o.ended = time.Now()
	o.log.Info("the database is back", zap.Duration("outage", o.ended.Sub(o.since)))
}

func (o *outage) set(p phase) {
	o.current.Store(int32(p))
	close(o.changed)
	o.changed = make(chan struct{})
}

// await returns when the phase is p or better, or with ctx's error.
func (o *outage) await(ctx context.Context, p phase) error {
	for o.phase() < p {
		o.mu.Lock()
		now, changed := o.phase(), o.changed
		o.mu.Unlock()
		if now >= p {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// pause waits before the next try to get through.
func (o *outage) pause(ctx context.Context) error {
	o.mu.Lock()
	d := o.pauses.NextBackOff()
	o.mu.Unlock()
	return sleep(ctx, d)
}

// pauses returns jittered pauses that double from first to longest, for ever.
// (The defaults of the package give up after 15 minutes.)
func pauses(first, longest time.Duration) *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(first),
		backoff.WithMaxInterval(longest),
		backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(0.5),
		backoff.WithMaxElapsedTime(0),
	)
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

// poke leaves a signal in c, which holds at most one.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
