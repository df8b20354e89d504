package processor

import (
	"context"
	"errors"
	"fmt"

	"github.com/windrow-go/windrow/internal/jsonb"
	"github.com/windrow-go/windrow/model"
)

// checkIn stores the outcomes of rows. If the database refuses the data, the
// guilty row is found by halving and fails with the reason; the others are stored
// as they are.
func (c *committer) checkIn(ctx context.Context, rows []*held) error {
	receipt, err := c.send(ctx, rows)
	switch {
	case err == nil:
		c.account(rows, receipt)
		return nil
	case errors.Is(err, model.ErrEffect):
		return c.checkInApart(ctx, rows, err)
	case !errors.Is(err, model.ErrRefused):
		return err
	case len(rows) == 1:
		return c.replace(ctx, rows[0], err)
	}
	half := len(rows) / 2
	if err := c.checkIn(ctx, rows[:half]); err != nil {
		return err
	}
	return c.checkIn(ctx, rows[half:])
}

// checkInApart stores outcomes one by one after an effect of theirs has failed, so
// that only its own row suffers: that is tried again, as after an error of the
// handler.
func (c *committer) checkInApart(ctx context.Context, rows []*held, failed error) error {
	if len(rows) > 1 {
		for _, h := range rows {
			if err := c.checkIn(ctx, []*held{h}); err != nil {
				return err
			}
		}
		return nil
	}
	h := rows[0]
	h.dropPrepared()
	h.failure = jsonb.SafeText(failed.Error(), maxErrorText)
	c.charge(h, failed)
	c.counts.failedCalls.Add(1)
	c.logFailure(h)
	return c.checkIn(ctx, rows)
}

func (c *committer) send(ctx context.Context, rows []*held) (receipt model.Receipt, err error) {
	c.batch = c.batch[:0]
	for _, h := range rows {
		c.batch = append(c.batch, model.CheckIn{Ticket: h.ticket, Outcome: h.outcome})
	}
	defer clear(c.batch) // of results, which may be large
	err = c.insist(ctx, func(ctx context.Context) (err error) {
		receipt, err = c.store.CheckIn(ctx, c.batch)
		return err
	})
	if err != nil {
		return receipt, fmt.Errorf("check in %d rows: %w", len(rows), err)
	}
	return receipt, nil
}

// replace puts the reason for a refusal in the place of the refused outcome: first
// in the database's words, then, should these be refused too, in words that have
// nothing of the row in them.
func (c *committer) replace(ctx context.Context, h *held, refusal error) error {
	text := jsonb.SafeText(refusal.Error(), maxErrorText)
	switch h.refusals++; h.refusals {
	case 1:
	case 2:
		text = model.ErrRefused.Error()
	default: // not a matter of this row
		return fmt.Errorf("check in row %d as failed: %v", h.ticket.ID, refusal)
	}
	h.failure = text
	c.decide(h, model.Outcome{Verdict: model.VerdictFailed, Error: text})
	c.logFailure(h)
	return c.checkIn(ctx, []*held{h})
}

// account counts what became of rows.
func (c *committer) account(rows []*held, receipt model.Receipt) {
	lost := make(map[model.Ticket]bool, len(receipt.Lost))
	for _, t := range receipt.Lost {
		lost[t] = true
	}
	var done, failed, retried, released int64
	for _, h := range rows {
		h.stored = true
		switch {
		case len(lost) > 0 && lost[h.ticket]:
			h.dropPrepared()
			if h.lost.CompareAndSwap(false, true) {
				c.countLost(h)
			}
		case h.outcome.Verdict == model.VerdictDone:
			done++
		case h.outcome.Verdict == model.VerdictFailed:
			failed++
		case h.outcome.Verdict == model.VerdictUnavailable:
			released++
		default:
			retried++
		}
	}
	c.counts.done.Add(done)
	c.counts.failed.Add(failed)
	c.counts.retried.Add(retried)
	c.counts.released.Add(released)
}
