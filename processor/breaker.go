package processor

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.uber.org/zap"

	"github.com/windrow-go/windrow/internal/jsonb"
	"github.com/windrow-go/windrow/model"
)

const (
	// tripRefusals is how many calls one after the other, without a success between
	// them, have to be refused for the breaker to open; fewer where fewer are under
	// way at once.
	tripRefusals = 3
	// tripFailures is how many rows, different ones, have to fail one after the
	// other for that to be blamed on the handler.
	tripFailures = 20
	// mostRefunds is how often a row is given back without its attempt while others
	// succeed. Then it pays, so that nothing goes round for ever.
	mostRefunds = 2

	// The pauses between probes grow from the first to one of the others: a service
	// is given more time than a handler that may just have met bad rows.
	firstProbe    = time.Second
	longestProbe  = 30 * time.Second
	longestDoubts = 5 * time.Second
)

// breaker slows the worker down while its handler can't serve: rows are given back
// instead of being started, but for one now and then, to probe. The first that
// succeeds closes it.
type breaker struct {
	log  *zap.Logger
	trip int // refusals that open it

	mu       sync.Mutex
	refusals int           // one after the other
	failures int           // one after the other, of different rows
	lastRow  int64         // the last of these
	served   time.Duration // when a call last went well, by the worker's clock
	trouble  string        // why it is open; "" = closed
	since    time.Time
	ended    time.Time // of the trouble before
	next     time.Time // when to probe
	probing  bool
	pauses   *backoff.ExponentialBackOff
	changed  chan struct{} // closed and replaced when something changes
}

func newBreaker(log *zap.Logger, slots int) *breaker {
	return &breaker{log: log, trip: min(tripRefusals, slots), changed: make(chan struct{})}
}

// enter tells whether a row may be started: any while the breaker is closed, one at
// a time, to probe, once it is time, while it is open.
func (b *breaker) enter(h *held) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.trouble == "" {
		return true
	}
	if b.probing || time.Now().Before(b.next) {
		return false
	}
	b.probing, h.probe = true, true
	return true
}

// leave is told that a probe is over, however it ended.
func (b *breaker) leave(h *held) {
	if !h.probe {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	h.probe, b.probing = false, false
	b.announce()
}

// success notes at the time now that the handler has served, be it to say that the
// row is hopeless.
func (b *breaker) success(now time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refusals, b.failures, b.served = 0, 0, now
	if b.trouble == "" {
		return
	}
	b.trouble, b.ended = "", time.Now()
	// Told as loudly as the beginning.
	b.log.Warn("the handler serves again", zap.Duration("trouble", b.ended.Sub(b.since)))
	b.announce()
}

// blames tells whether err is the handler's fault and not the row's, and opens the
// breaker if it was one failure too many. opened is true if it did.
func (b *breaker) blames(h *held, err error) (blamed, opened bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	row, refused := h.ticket.ID, model.IsUnavailable(err)
	switch {
	case refused && h.attempt.Load().refused: // by the same answer to the same batch
	case refused:
		h.attempt.Load().refused = true
		b.refusals++
	case row != b.lastRow:
		b.failures, b.lastRow = b.failures+1, row
	}
	paid := h.row.Refunds >= mostRefunds && (!refused || b.served > time.Duration(h.start.Load()))
	blamed = (refused || b.failures >= tripFailures) && !paid
	if b.trouble != "" && h.probe || b.refusals >= b.trip || b.failures >= tripFailures {
		opened = b.open(err, refused)
	}
	return blamed, opened
}

// open opens the breaker, or sets the time of the next probe anew. It returns true
// if it was closed.
func (b *breaker) open(err error, refused bool) bool {
	was := b.trouble != ""
	if was && time.Now().Before(b.next) {
		return false // it ended a while after the one that was too many
	}
	if !was && (b.pauses == nil || time.Since(b.ended) > calm) {
		longest := longestDoubts
		if refused {
			longest = longestProbe
		}
		b.pauses = pauses(firstProbe, longest)
	}
	pause := b.pauses.NextBackOff()
	if after, asked := model.RetryDelay(err); asked {
		pause = max(pause, after)
	}
	b.next = time.Now().Add(pause)
	b.announce()
	if was {
		return false
	}
	reason := "the handler can't serve"
	if !refused {
		reason = fmt.Sprintf("%d rows failed one after the other", b.failures)
	}
	b.trouble, b.since = reason+": "+jsonb.SafeText(err.Error(), 500), time.Now()
	b.log.Warn("slowing down: "+reason, zap.String("error", jsonb.SafeText(err.Error(), 500)))
	return true
}

func (b *breaker) announce() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// state returns why the breaker is open ("" = it is closed).
func (b *breaker) state() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.trouble
}

// await waits until it makes sense to claim, and tells whether it does so for one
// row only.
func (b *breaker) await(ctx context.Context) (one bool, err error) {
	for {
		b.mu.Lock()
		open, probing, wait, changed := b.trouble != "", b.probing, time.Until(b.next), b.changed
		b.mu.Unlock()
		if !open {
			return false, nil
		}
		if !probing && wait <= 0 {
			return true, nil
		}
		if probing {
			wait = longestProbe // changed comes first
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-changed:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
	}
}
