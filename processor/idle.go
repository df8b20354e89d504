package processor

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/windrow-go/windrow/model"
)

const (
	longestNap  = time.Minute // jittered: a look at the table even if nothing was announced
	emptyNap    = time.Second // while others hold the last rows, with UntilEmpty
	shortestNap = time.Millisecond
)

// idle waits after a check-out that brought nothing: until the next row is due,
// or something is announced. It returns errEmpty if there is nothing to wait for.
func (c *claimer) idle(stopping context.Context) error {
	// A stir from now on ends the wait below, even if it comes before it.
	waiting, cancel := context.WithCancel(stopping)
	defer cancel()
	c.stir.Store(&cancel)
	defer c.stir.Store(nil)

	idle := c.hand.idle() // before the agenda is read: what is settled later is still in it
	agenda, err := c.agenda(stopping)
	switch {
	case err != nil:
		return err
	case c.opts.UntilEmpty && idle && !agenda.Open:
		return errEmpty
	case agenda.Next == 0: // others were quicker
		return sleep(stopping, c.pauses.NextBackOff())
	}
	c.pauses.Reset()
	nap := c.nap(agenda.Next)
	c.pulse.before(stopping, nap)
	c.napping.Store(true)
	defer c.napping.Store(false)
	err = c.store.Wait(waiting, nap)
	if err != nil && waiting.Err() == nil {
		return fmt.Errorf("wait for rows: %w", err)
	}
	return stopping.Err()
}

func (c *claimer) agenda(ctx context.Context) (agenda model.Agenda, err error) {
	err = call(ctx, func(ctx context.Context) (err error) {
		agenda, err = c.store.Agenda(ctx)
		return err
	})
	if err != nil {
		return agenda, fmt.Errorf("look at what is due: %w", err)
	}
	return agenda, nil
}

// nap is how long to wait if the next row is due after next (negative: none is).
func (c *claimer) nap(next time.Duration) time.Duration {
	longest := longestNap*3/4 + rand.N(longestNap/2)
	if c.opts.UntilEmpty {
		longest = emptyNap
	}
	if next < 0 {
		return longest
	}
	return min(max(next, shortestNap), longest)
}
