package processor

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// lastCheckOut is how long a check-out that is under way at a stop may go
	// on: cutting it off can leave rows held that nobody knows of.
	lastCheckOut = 5 * time.Second
	// patience is how long a handler may take to return after its context was
	// cancelled; then it counts as stuck.
	patience = 5 * time.Second
	// lastCheckIn is how long storing may go on after the last handler.
	lastCheckIn = 30 * time.Second
)

// parts are the goroutines of a worker and the contexts that end them. A stop
// ends them one after the other, in the order of the fields.
type parts struct {
	*worker
	claimer   *claimer
	slots     *slots
	committer *committer
	renewer   *renewer

	// None of these ends with the context of Run, which only begins the stop.
	claiming, working, storing, renewing context.Context
	cutClaims, endRenewals               context.CancelFunc
	cutWork                              context.CancelCauseFunc
	endStoring                           context.CancelFunc

	claims, storage, renewals, reports errgroup.Group
}

func newParts(w *worker, run context.Context) *parts {
	p := &parts{
		worker:    w,
		claimer:   newClaimer(w),
		slots:     newSlots(w),
		committer: newCommitter(w),
	}
	p.renewer = &renewer{worker: w, slots: p.slots}
	lasting := context.WithoutCancel(run)
	p.claiming, p.cutClaims = context.WithCancel(lasting)
	p.working, p.cutWork = context.WithCancelCause(lasting)
	p.storing, p.endStoring = context.WithCancel(lasting)
	p.renewing, p.endRenewals = context.WithCancel(lasting)
	return p
}

func (p *parts) start(stopping context.Context) {
	p.claims.Go(func() error {
		return p.fail(stopping, p.claimer.run(stopping, p.claiming))
	})
	p.renewals.Go(func() error {
		return p.fail(stopping, p.renewer.run(p.renewing))
	})
	p.reports.Go(func() error {
		p.pulse.run(stopping)
		return nil
	})
	p.storage.Go(func() error {
		return p.committer.run(p.storing)
	})
	p.slots.start(stopping, p.working)
}

// fail stops the worker because of err, and returns it if another reason was
// first: then this is the only trace of it.
func (p *parts) fail(stopping context.Context, err error) error {
	if err == nil {
		return nil
	}
	p.halt(err)
	if errors.Is(context.Cause(stopping), err) {
		return nil
	}
	return err
}

// stop brings everything to an end in the order that the package's comment
// gives. stopping has ended: the claimer and idle slots are on their way out.
func (p *parts) stop() error {
	cut := time.AfterFunc(lastCheckOut, p.cutClaims)
	defer cut.Stop()
	p.spill()
	left := p.endWork()
	claims := p.claims.Wait()
	p.cutClaims()
	p.spill() // the claimer may have filled the buffer just before it noticed

	end := time.AfterFunc(lastCheckIn, p.endStoring)
	defer end.Stop()
	_ = p.reports.Wait() // always nil
	close(p.committer.over)
	unstored := p.storage.Wait()
	p.endStoring()
	p.endRenewals()
	return errors.Join(claims, unstored, p.renewals.Wait(), stuckError(left))
}

// endWork waits for the handlers, then cancels them, and returns the rows of
// those that don't end even so.
func (p *parts) endWork() (left []*held) {
	defer p.cutWork(nil)
	if !p.slots.wait(p.opts.Grace) {
		p.cutOff.Store(int64(p.now()))
		p.cutWork(ErrStopping)
		p.slots.wait(patience)
	}
	return p.hand.leftBehind()
}
