package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/windrow-go/windrow/internal/jsonb"
)

// storePatience is how long it is tried to store how a run has ended.
const storePatience = 10 * time.Minute

// active is a run that this scheduler carries out.
type active struct {
	run      Run
	schedule Schedule
	key      int64
	tie      link // has its lock
	stop     context.CancelCauseFunc
	expiry   *time.Timer // stops it when its lease was not renewed; nil: it has none
	state    State       // how it has ended
}

// start begins a run, if its lock is free, and carries it out beside the engine.
func (e *engine) start(ctx context.Context, c candidate) (outcome, error) {
	if e.isBusy(c.Lock) {
		return occupied, nil
	}
	tie, key := e.tie, e.store.lockKey(c.Lock, c.ID)
	calling, cancel := call(ctx)
	defer cancel()
	granted, err := tie.lock(calling, key)
	if err != nil || !granted {
		return occupied, err
	}
	began := time.Now()
	out, err := e.store.start(calling, c, e.opts.Holder, e.lease())
	if err != nil || out.outcome != begun {
		tie.unlock(key)
	}
	if err != nil {
		return lostRace, err
	}
	for _, id := range out.abandoned {
		e.log.Warn("a run was abandoned: its holder is gone", zap.Int64("run", id))
		e.ticked.Abandoned++
	}
	switch out.outcome {
	case skipped:
		e.ticked.Skipped++
		e.log.Warn("a run was skipped: its time was missed", zap.String("schedule", out.run.Schedule),
			zap.Int64("run", out.run.ID), zap.Time("due", out.run.DueAt))
	case begun:
		e.ticked.Started++
		e.carryOut(ctx, out, tie, key, began)
	}
	return out.outcome, nil
}

// lease is how long a lease lasts; zero where the session has the locks.
func (e *engine) lease() time.Duration {
	if e.tie.leased() {
		return e.opts.Lease
	}
	return 0
}

// isBusy tells whether a run of this scheduler's has the lock, and be it one that was
// told to stop and is not yet over.
func (e *engine) isBusy(lock *string) bool {
	for _, a := range e.active {
		if lock != nil && a.run.Lock == *lock {
			return true
		}
	}
	return false
}

// carryOut runs a run in a goroutine of its own.
func (e *engine) carryOut(ctx context.Context, out started, tie link, key int64, began time.Time) {
	running, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	a := &active{run: out.run, schedule: out.schedule, key: key, tie: tie, stop: stop}
	if tie.leased() {
		a.expiry = time.AfterFunc(e.expiry(began), func() {
			stop(fmt.Errorf("%w: its lease could not be renewed in time", ErrLockLost))
		})
	}
	heed := context.AfterFunc(tie.lost(), func() { stop(context.Cause(tie.lost())) })
	e.active[out.run.ID] = a
	e.log.Info("run started", zap.String("schedule", a.run.Schedule), zap.Int64("run", a.run.ID), zap.Time("due", a.run.DueAt),
		zap.Bool("on_demand", a.run.OnDemand))
	go func() {
		end := e.execute(running, a)
		heed()
		a.state = end.state
		e.storeEnd(a, end)
		if a.expiry != nil {
			a.expiry.Stop()
		}
		stop(nil)
		tie.unlock(key)
		e.ended <- a
	}()
}

// expiry is how long a run may go on whose lease was last renewed at began: others may
// take it after two thirds of the lease at the soonest (see backend.keep), and it
// takes a moment to stop.
func (e *engine) expiry(began time.Time) time.Duration {
	return time.Until(began.Add(e.opts.Lease / 2))
}

// execute runs what the schedule names, and tells how that ended.
func (e *engine) execute(ctx context.Context, a *active) ending {
	cancel := func() {}
	if a.schedule.Timeout > 0 {
		cause := fmt.Errorf("%w after %s", ErrTimeout, shortDuration(a.schedule.Timeout))
		ctx, cancel = context.WithTimeoutCause(ctx, a.schedule.Timeout, cause)
	}
	defer cancel()
	output := &tail{limit: outputLimit}
	end := ending{id: a.run.ID, state: Done}
	var cut bool
	var err error
	if len(a.schedule.Command) > 0 {
		end.exitStatus, cut, err = runCommand(ctx, a.schedule.Command, environment(e.opts.Env, a.run), output)
	} else {
		err = callFunction(ctx, e.opts.Functions[a.schedule.Function], a.run, output)
		cut = err != nil && ctx.Err() != nil
	}
	if cut {
		err = context.Cause(ctx)
	}
	if err != nil {
		end.state, end.err = stateOf(err), jsonb.SafeText(err.Error(), errorLimit)
	}
	if end.state == Abandoned {
		end.by = e.opts.Holder
	}
	end.output = output.String()
	return end
}

// stateOf is how a run stands that has ended with an error.
func stateOf(err error) State {
	switch {
	case errors.Is(err, ErrCancelled):
		return Cancelled
	case errors.Is(err, ErrLockLost):
		return Abandoned
	}
	return Failed
}

func callFunction(ctx context.Context, function Function, run Run, output *tail) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return function(ctx, run, output)
}

// storeEnd stores how a run has ended, and tries again while the database is away.
func (e *engine) storeEnd(a *active, end ending) {
	ctx, done := context.WithTimeout(e.storing, storePatience)
	defer done()
	log := e.log.With(zap.String("schedule", a.run.Schedule), zap.Int64("run", a.run.ID), zap.String("state", string(end.state)))
	pause := 100 * time.Millisecond
	for {
		calling, cancel := context.WithTimeout(ctx, callTimeout)
		stored, err := e.store.finish(calling, e.opts.Holder, end)
		cancel()
		switch {
		case err == nil && stored:
			e.logEnd(log, end)
			return
		case err == nil:
			log.Warn("a run has ended that another scheduler had found abandoned; how it ended is not stored", zap.String("error", end.err))
			return
		case ctx.Err() != nil:
			log.Error("how a run has ended could not be stored", zap.Error(err))
			return
		}
		log.Debug("how a run has ended could not be stored yet", zap.Error(err))
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		pause = min(2*pause, longestTrouble/3)
	}
}

func (e *engine) logEnd(log *zap.Logger, end ending) {
	if end.exitStatus != nil {
		log = log.With(zap.Int("exit_status", *end.exitStatus))
	}
	if end.state == Done {
		log.Info("run ended")
		return
	}
	log.Warn("run ended", zap.String("error", end.err))
}

// keep looks after this scheduler's runs: their leases are renewed, and those that
// were cancelled, or that somebody else took for abandoned, are told to stop.
func (e *engine) keep(ctx context.Context) error {
	if len(e.active) == 0 {
		return nil
	}
	var lease time.Duration
	for _, a := range e.active {
		if a.tie.leased() {
			lease = e.opts.Lease
		}
	}
	began := time.Now()
	calling, cancel := call(ctx)
	defer cancel()
	found, err := e.store.keep(calling, e.opts.Holder, lease)
	if err != nil {
		return err
	}
	own := map[int64]kept{}
	for _, k := range found {
		own[k.ID] = k
	}
	for id, a := range e.active {
		k, ours := own[id]
		switch {
		case !ours: // if it has not just ended
			a.stop(fmt.Errorf("%w: another scheduler found its holder gone", ErrLockLost))
		case k.CancelledBy != "":
			a.stop(fmt.Errorf("%w by %s", ErrCancelled, k.CancelledBy))
		}
		if a.expiry != nil && ours {
			a.expiry.Reset(e.expiry(began))
		}
	}
	return nil
}

// reap marks runs of holders that are gone as abandoned, and returns how many there
// were. A run in its own name that it does not carry out is one whose start was not
// answered.
func (e *engine) reap(ctx context.Context, running []held) (int, error) {
	n := 0
	for _, h := range running {
		if _, ours := e.active[h.ID]; ours {
			continue
		}
		abandoned, err := e.reapOne(ctx, h)
		if err != nil {
			return n, err
		}
		if abandoned {
			n++
			e.log.Warn("a run was abandoned: its holder is gone", zap.Int64("run", h.ID), zap.String("gone", h.Holder))
		}
	}
	return n, nil
}

func (e *engine) reapOne(ctx context.Context, h held) (bool, error) {
	calling, cancel := call(ctx)
	defer cancel()
	if h.Holder != e.opts.Holder {
		return e.store.reap(calling, h, e.opts.Holder)
	}
	return e.store.finish(calling, e.opts.Holder, ending{
		id: h.ID, state: Abandoned, by: e.opts.Holder,
		err: "the answer to its start, or to its end, was lost",
	})
}
