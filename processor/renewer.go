package processor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/windrow-go/windrow/model"
)

// maxRenewals bounds one statement of the renewer, in rows.
const maxRenewals = 1000

// renewer keeps the claims in hand alive, finds lost and stuck ones, and gets
// through to the database after an outage.
type renewer struct {
	*worker
	slots *slots
}

// run looks after the claims until ctx ends. While there are none it rests.
func (r *renewer) run(ctx context.Context) error {
	every := min(r.opts.Lease/12, time.Second)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-r.outage.began:
			err = r.recover(ctx)
		case <-tick.C:
			idle := r.hand.idle()
			if err = r.pass(ctx); idle && r.quiet() {
				tick.Stop()
			}
		case <-r.hand.taken: // even if it was before the ticker was stopped
			tick.Reset(every)
			continue
		case <-r.check:
			err = r.pass(ctx)
		}
		r.hand.announceRenewal()
		if err != nil && !r.outage.report(err) && ctx.Err() == nil {
			return err
		}
	}
}

// pass renews what is due, unless the database is known to be gone.
func (r *renewer) pass(ctx context.Context) error {
	r.flushLogs(false)
	r.findStuck()
	if r.outage.phase() == down {
		return nil
	}
	due := r.due()
	if slices.ContainsFunc(due, func(h *held) bool { return h.state.Load() == waiting }) {
		// These were to be started within a moment. Let others have them.
		r.spilled.Store(true)
		r.spill()
	}
	return r.renew(ctx, due)
}

// quiet tells whether all events that were held back from the log have been told.
func (r *renewer) quiet() bool {
	return r.failures.empty() && r.losses.empty() && r.remarks.empty()
}

// due returns the claims whose lease is a third gone, or about to be.
func (r *renewer) due() []*held {
	enough := r.now() + r.opts.Lease*2/3
	return r.hand.filter(func(h *held) bool {
		return h.leaseEnd() <= enough && h.renewable()
	})
}

// atRisk counts the claims of whose lease less than a third is left: none while the
// database answers, as they are renewed when a third is gone. It is worked out for
// whoever asks, since the renewer, when it matters, is waiting for the database.
func (w *worker) atRisk() int { return w.hand.endingBefore(w.now() + w.opts.Lease/3) }

// renewable tells whether the claim is wanted still. The lease of a stuck handler
// runs out, so that somebody else gets the row.
func (h *held) renewable() bool {
	s := h.state.Load()
	return s != stuck && s != leaving && !h.lost.Load()
}

// recover tries to get through until it does; the proof is that everything in
// hand has been renewed.
func (r *renewer) recover(ctx context.Context) error {
	for r.outage.phase() == down {
		if err := r.outage.pause(ctx); err != nil {
			return err
		}
		r.flushLogs(false)
		r.findStuck()
		err := r.getThrough(ctx)
		switch {
		case err == nil:
			r.outage.lift(down, renewed)
		case !r.outage.report(err):
			return err
		}
	}
	return nil
}

func (r *renewer) getThrough(ctx context.Context) error {
	if rows := r.hand.filter((*held).renewable); len(rows) > 0 {
		return r.renew(ctx, rows)
	}
	return call(ctx, func(ctx context.Context) error {
		_, err := r.store.Agenda(ctx)
		return err
	})
}

// renew pushes the leases of rows further, in batches.
func (r *renewer) renew(ctx context.Context, rows []*held) error {
	for batch := range slices.Chunk(rows, maxRenewals) {
		batch = slices.DeleteFunc(batch, func(h *held) bool { return !h.renewable() })
		if len(batch) == 0 {
			continue
		}
		end := r.now() + r.opts.Lease
		var lost []model.Ticket
		err := call(ctx, func(ctx context.Context) (err error) {
			lost, err = r.store.Renew(ctx, r.opts.Lease, tickets(batch))
			return err
		})
		if err != nil {
			return fmt.Errorf("renew leases: %w", err)
		}
		r.lose(extend(batch, end, lost))
	}
	return nil
}

// lose cancels the handlers of rows that are somebody else's by now.
func (r *renewer) lose(rows []*held) {
	for _, h := range rows {
		if h.lose(r.now()) {
			r.countLost(h)
		}
	}
}

// findStuck looks for handlers that have not returned though their contexts ended
// some time ago.
func (r *renewer) findStuck() {
	long := r.now() - patience
	late := r.hand.filter(func(h *held) bool {
		return h.state.Load() == running && r.cancelled(h) < long
	})
	for _, h := range late {
		r.leaveStuck(h)
	}
}

// leaveStuck gives up on a running handler. Its row fails, another slot takes the
// place of its own, and nobody waits for it any more.
func (r *renewer) leaveStuck(h *held) {
	if !h.state.CompareAndSwap(running, stuck) {
		return // it has just returned
	}
	r.log.Warn("the handler ignores its cancel; its row goes on without it", zap.Int64("id", h.ticket.ID))
	r.hand.strays(h)
	r.slots.abandon(h.attempt.Load().slot)
	if r.cutOff.Load() > 0 {
		return // the worker is stopping, and the row is left as it is
	}
	r.breaker.leave(h)
	r.counts.calls.Add(1)
	switch {
	case h.lost.Load():
		h.fate = drop
	default:
		h.called = true
		h.failure = errStuck.Error()
		r.counts.failedCalls.Add(1)
		r.charge(h, errStuck)
		r.logFailure(h)
	}
	h.end()
	r.settle(h)
}

// errStuck is the error of a row whose handler has not returned.
var errStuck = errors.New("the handler did not return when its time was up")

// cancelled returns when the context of the row's handler ended, or will.
func (w *worker) cancelled(h *held) time.Duration {
	at := time.Duration(1<<63 - 1)
	if t := h.lostAt.Load(); t > 0 && h.attempt.Load().rows == 1 {
		at = min(at, time.Duration(t))
	}
	if t := w.cutOff.Load(); t > 0 {
		at = min(at, time.Duration(t))
	}
	if w.opts.Timeout > 0 {
		at = min(at, time.Duration(h.start.Load())+w.opts.Timeout)
	}
	return at
}

func (w *worker) countLost(h *held) {
	w.counts.lost.Add(1)
	if w.losses.allow() {
		w.log.Warn("row lost to a newer claim", zap.Int64("id", h.ticket.ID))
	}
}

func tickets(rows []*held) []model.Ticket {
	out := make([]model.Ticket, len(rows))
	for i, h := range rows {
		out[i] = h.ticket
	}
	return out
}
