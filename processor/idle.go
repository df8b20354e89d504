package processor

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	longestNap  = time.Minute // jittered: a look at the table even if nothing was announced
	emptyNap    = time.Second // while others hold the last rows, with UntilEmpty
	shortestNap = time.Millisecond
)

// idle waits after a check-out that brought nothing: until the next row is due,
// or something is announced. While neither happens it only looks again once a minute. It
// returns errEmpty if there is nothing to wait for.
func (c *claimer) idle(stopping context.Context) error {
	// A stir from now on ends the wait below, even if it comes before it.
	waiting, cancel := context.WithCancel(stopping)
	defer cancel()
	c.stir.Store(&cancel)
	defer c.stir.Store(nil)

	for first := true; ; first = false {
		idle := c.hand.idle() // before the agenda is read: what is settled later is still in it
		longest := c.longestNap()
		agenda, covered, err := c.pulse.look(stopping, longest)
		switch {
		case err != nil:
			return fmt.Errorf("look at what is due: %w", err)
		case c.opts.UntilEmpty && idle && !agenda.Open:
			return errEmpty
		case agenda.Next == 0 && first: // others were quicker
			return sleep(stopping, c.pauses.NextBackOff())
		case agenda.Next == 0:
			return nil
		}
		c.pauses.Reset()
		nap := evenNap(longest, covered)
		due := agenda.Next >= 0 && agenda.Next <= nap
		if due {
			nap = max(agenda.Next, shortestNap)
		}
		began := c.now()
		err = c.nap(waiting, nap)
		if err != nil && waiting.Err() == nil {
			return fmt.Errorf("wait for rows: %w", err)
		}
		if due || waiting.Err() != nil || c.opts.UntilEmpty || c.now()-began < nap {
			return stopping.Err()
		}
	}
}

// nap waits, while nothing else of the worker needs to be awake.
func (c *claimer) nap(waiting context.Context, d time.Duration) error {
	c.napping.Store(true)
	defer func() {
		c.napping.Store(false)
		poke(c.pulse.awake)
	}()
	return c.store.Wait(waiting, d)
}

// evenNap is the nap with which the time that a report is good for is slept through in
// equal parts of at most longest: so that the next report is made at its end, when the
// store may expect that of all.
func evenNap(longest, covered time.Duration) time.Duration {
	parts := (covered + longest - 1) / longest
	return covered / max(parts, 1)
}

// longestNap is how long to wait if no row is due before.
func (c *claimer) longestNap() time.Duration {
	if c.opts.UntilEmpty {
		return emptyNap
	}
	return longestNap*3/4 + rand.N(longestNap/2)
}
