package processor

import (
	"context"
	"fmt"
)

// CostReached ends Run when Options.MaxCost is reached. The worker has stopped in
// good order: everything that was finished is stored.
type CostReached struct {
	Total, Max float64
}

// Error gives both sums.
func (e *CostReached) Error() string {
	return fmt.Sprintf("the calls of the handler have cost %g, and %g was the limit", e.Total, e.Max)
}

// spend adds up what a batch has cost, whatever became of its rows, and stops the
// worker if that is too much by now.
func (c *committer) spend(ctx context.Context, batch []*held) {
	cost := 0.0
	for _, h := range batch {
		cost += h.cost
	}
	if cost == 0 {
		return
	}
	c.counts.addCost(cost)
	if err := c.spendInAll(ctx, cost); err != nil {
		c.halt(err)
	}
}

// spendInAll adds cost to the sum of the fleet, and returns a CostReached if that is
// the limit or more.
func (w *worker) spendInAll(ctx context.Context, cost float64) error {
	var total float64
	err := w.insist(ctx, func(ctx context.Context) (err error) {
		total, err = w.store.Spend(ctx, w.opts.Holder, cost)
		return err
	})
	if err != nil {
		return fmt.Errorf("add up the cost: %w", err)
	}
	if w.opts.MaxCost > 0 && total >= w.opts.MaxCost {
		return &CostReached{Total: total, Max: w.opts.MaxCost}
	}
	return nil
}
