package processor

import (
	"context"
	"fmt"
	"time"

	"github.com/windrow-go/windrow/model"
)

// What a check-in gathers at most.
const (
	batchRows  = 500
	batchBytes = 4 << 20
	batchDelay = 25 * time.Millisecond // since its first row
)

// committer stores outcomes and gives rows back, in batches. There is one, and it
// outlives all slots.
type committer struct {
	*worker
	over       chan struct{} // closed when no slot will settle anything more
	tally      tally
	batch      []model.CheckIn // used again and again
	broken     error           // a lasting error of the store: nothing more can be stored
	unstored   int             // outcomes that were given up
	unreturned int             // rows that could not be given back
}

func newCommitter(w *worker) *committer {
	return &committer{
		worker: w,
		over:   make(chan struct{}),
		tally:  tally{budget: w.opts.MaxFailures},
	}
}

// run stores what is settled until over is closed and nothing is left, and gives
// up when ctx ends. An error tells of what could not be stored.
func (c *committer) run(ctx context.Context) error {
	for more := true; more; {
		var batch []*held
		if batch, more = c.gather(); len(batch) > 0 {
			c.spend(ctx, batch)
			c.commit(ctx, batch)
			c.letGo(batch)
		}
		if len(c.settled) == 0 {
			c.outage.lift(renewed, up)
		}
	}
	return c.shortfall(ctx)
}

// shortfall tells what could not be stored. The reason is known from elsewhere,
// unless it is that time ran out.
func (c *committer) shortfall(ctx context.Context) error {
	if c.unstored == 0 && c.unreturned == 0 {
		return nil
	}
	err := fmt.Errorf("%d outcomes could not be stored and will be made again; %d rows stay held until their leases run out",
		c.unstored, c.unreturned)
	if ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", model.ErrUnavailable, err)
	}
	return err
}

// gather waits for settled rows and returns a batch of them. It may be empty. At
// the end, more is false.
func (c *committer) gather() (batch []*held, more bool) {
	select {
	case h := <-c.settled:
		return c.fill(h), true
	case <-c.outage.recovered:
		return nil, true
	case <-c.over:
	}
	select {
	case h := <-c.settled:
		return c.fill(h), true
	default:
		return nil, false
	}
}

// fill gathers more rows, until the batch is large or nothing else is in hand;
// what is there is taken at once, what is not is waited for until the batch is
// old enough.
func (c *committer) fill(first *held) []*held {
	batch, size := []*held{first}, first.outcomeSize()
	c.count(first)
	timer := time.NewTimer(c.delay())
	defer timer.Stop()
	for len(batch) < batchRows && size < batchBytes && int(c.hand.count.Load()) > len(batch) {
		h := c.next(timer.C)
		if h == nil {
			break
		}
		c.count(h)
		batch = append(batch, h)
		size += h.outcomeSize()
	}
	return batch
}

// next returns a settled row, or nil if there is none and none comes in time.
func (c *committer) next(late <-chan time.Time) *held {
	select {
	case h := <-c.settled:
		return h
	default:
	}
	select {
	case h := <-c.settled:
		return h
	case <-late:
		return nil
	}
}

// delay is how long to wait for company of a first row.
func (c *committer) delay() time.Duration {
	if c.sparse.Load() {
		return 0
	}
	return batchDelay
}

func (h *held) outcomeSize() int { return len(h.outcome.Result) + len(h.outcome.Error) }

// count has the tally judge the row's call, and stops the worker if it was one
// failure too many.
func (c *committer) count(h *held) {
	if !h.called {
		return
	}
	if err := c.tally.add(h.failure); err != nil {
		c.halt(err)
	}
}

// commit carries out the fates of a batch. After a lasting error rows are only
// given back, which may work still.
func (c *committer) commit(ctx context.Context, batch []*held) {
	var outcomes, returned []*held
	for _, h := range batch {
		switch h.fate {
		case checkIn:
			outcomes = append(outcomes, h)
		case release:
			returned = append(returned, h)
		}
	}
	if c.broken == nil && len(outcomes) > 0 {
		if err := c.checkIn(ctx, outcomes); err != nil {
			c.broken = err
			c.halt(err)
		}
	}
	for _, h := range outcomes {
		if !h.stored {
			c.unstored++ // and given back at once, if that works
			returned = append(returned, h)
		}
	}
	c.release(ctx, returned)
}

// release gives rows back.
func (c *committer) release(ctx context.Context, rows []*held) {
	if len(rows) == 0 {
		return
	}
	err := c.insist(ctx, func(ctx context.Context) error {
		return c.store.Release(ctx, tickets(rows))
	})
	if err == nil {
		c.counts.released.Add(int64(len(rows)))
		return
	}
	c.unreturned += len(rows)
	c.halt(fmt.Errorf("release %d rows: %w", len(rows), err))
}

// letGo forgets rows and whatever they took up, and tells the claimer.
func (c *committer) letGo(batch []*held) {
	var reserved int64
	due := false // a row may be available again, soon
	for _, h := range batch {
		reserved += h.reserved
		if h.fate != checkIn {
			h.dropPrepared()
		}
		due = due || h.outcome.Verdict > model.VerdictFailed || h.fate == release
	}
	if reserved > 0 {
		c.results.Release(reserved)
	}
	c.hand.remove(batch)
	poke(c.wake)
	if due || c.hand.idle() {
		c.stirUp()
	}
}
