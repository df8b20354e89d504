package processor

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/windrow-go/windrow/model"
)

// claimer checks rows out and fills the buffer. There is one, however many slots
// it feeds.
type claimer struct {
	*worker
	pace   *pace
	pauses *backoff.ExponentialBackOff // while others are quicker
	heeded time.Duration               // when it last asked for a pause and there was none; 0: to be asked
	paused bool
	few    int // the most to ask for, since rows that must run alone were met; 0: no limit
}

func newClaimer(w *worker) *claimer {
	return &claimer{
		worker: w,
		pace:   newPace(w.opts, w.limit),
		pauses: pauses(10*time.Millisecond, 100*time.Millisecond),
	}
}

// run claims until stopping ends, or there is nothing left and that was the aim
// (errEmpty). A check-out is cut off only when claiming ends.
func (c *claimer) run(stopping, claiming context.Context) error {
	for stopping.Err() == nil {
		if err := c.step(stopping, claiming); err != nil && stopping.Err() == nil {
			return err
		}
	}
	return nil
}

func (c *claimer) step(stopping, claiming context.Context) error {
	one, err := c.breaker.await(stopping)
	if err != nil {
		return err
	}
	n, err := c.room(stopping, one)
	if err != nil {
		return err
	}
	if err := c.outage.await(stopping, up); err != nil {
		return err
	}
	got := n
	if err = c.heed(stopping); err == nil {
		got, err = c.checkOut(stopping, claiming, n)
	}
	if err == nil && got == 0 {
		err = c.idle(stopping)
	}
	if c.outage.report(err) {
		return nil
	}
	return err
}

// orderEvery is how often a worker asks whether the job is paused, at most, when it is
// about to check out, and while it is paused.
const orderEvery = time.Second

// heed returns when the job is not paused, which it asks for once a second at most.
func (c *claimer) heed(stopping context.Context) error {
	for {
		if now := c.now(); c.heeded != 0 && now-c.heeded < orderEvery {
			return nil
		}
		paused := false
		err := call(stopping, func(ctx context.Context) (err error) {
			paused, err = c.store.Paused(ctx)
			return err
		})
		if err != nil {
			return err
		}
		if paused != c.paused {
			c.paused = paused
			c.log.Info(map[bool]string{true: "paused: nothing is checked out until windrow resume", false: "resumed"}[paused])
		}
		if !paused {
			c.heeded = c.now()
			return nil
		}
		c.heeded = 0
		if err := sleep(stopping, orderEvery); err != nil {
			return err
		}
	}
}

// room waits until there is room for some rows and returns for how many: for one
// alone if that is to be a probe.
func (c *claimer) room(stopping context.Context, probe bool) (int, error) {
	for {
		n := c.ask()
		switch {
		case probe && c.hand.unfinished.Load() == 0:
			return 1, nil
		case !probe && n > 0:
			return n, nil
		}
		select {
		case <-c.wake:
		case <-stopping.Done():
			return 0, stopping.Err()
		}
	}
}

func (c *claimer) ask() int {
	if c.spilled.Swap(false) {
		c.pace.restart()
	}
	c.pace.observe(c.counts.calls.Load(), time.Duration(c.counts.handlerTime.Load()))
	c.sparse.Store(c.pace.sparse())
	c.low.Store(int64(c.pace.low())) // first, so that no settled row is missed
	if c.hand.alone.Load() > 0 {     // the slots can't take anything else just now
		return 0
	}
	n := c.pace.ask(int(c.hand.unfinished.Load()), int(c.hand.count.Load()), c.hand.bytes.Load())
	if c.few > 0 {
		return min(n, c.few)
	}
	return n
}

// checkOut claims up to n rows and puts them into the buffer.
func (c *claimer) checkOut(stopping, claiming context.Context, n int) (int, error) {
	end := c.now() + c.opts.Lease // from before the call: the lease surely lasts that long
	var claims []model.Claim
	err := call(claiming, func(ctx context.Context) (err error) {
		claims, err = c.store.CheckOut(ctx, c.opts.Holder, c.opts.Lease, n)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("check out: %w", err)
	}
	if len(claims) > 0 {
		c.pauses.Reset()
		c.pace.claimed(claims)
		c.counts.claimed.Add(int64(len(claims)))
		c.feed(stopping, claims, end)
	}
	return len(claims), nil
}

// postpone gives rows back that must run alone, all but one, which it puts last.
// Held side by side they would all be charged when one of them kills the worker
// again. Those given back wait a moment, the longer the more there are, so that
// other rows come first and they don't all come back at once.
func (c *claimer) postpone(rows []*held) []*held {
	var alone *held
	kept := rows[:0]
	spread := max(time.Second, time.Duration(len(rows))*20*time.Millisecond)
	for _, h := range rows {
		switch {
		case !h.suspect(c.opts.MaxAttempts):
			kept = append(kept, h)
		case alone == nil:
			alone = h
		default:
			delay := time.Second + rand.N(spread)
			c.decide(h, model.Outcome{Verdict: model.VerdictUnavailable, Delay: delay})
			h.end()
			c.settle(h)
		}
	}
	if alone == nil {
		c.more()
		return kept
	}
	c.few = 1
	return append(kept, alone)
}

// more lifts the limit on what is asked for step by step.
func (c *claimer) more() {
	if c.few *= 2; c.few >= c.opts.MaxBatch {
		c.few = 0
	}
}

// feed takes claims in hand. If the worker is stopping by now they are not
// started.
func (c *claimer) feed(stopping context.Context, claims []model.Claim, leaseEnd time.Duration) {
	rows := make([]*held, len(claims))
	for i := range claims {
		rows[i] = newHeld(&claims[i], leaseEnd)
	}
	c.hand.add(rows)
	for _, h := range c.postpone(rows) {
		if stopping.Err() != nil {
			c.giveBack(h)
			continue
		}
		c.buffer <- h
	}
}
