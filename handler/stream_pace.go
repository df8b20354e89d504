package handler

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/windrow-go/windrow/model"
)

// patience is how long a row waits for the start of a child. Two rows in a row that
// kill their children should disturb nobody else.
const patience = 500 * time.Millisecond

// pace holds up the start of children when one after the other dies before its
// first answer. The first such death holds up nothing: it may be a row's doing.
type pace struct {
	mu         sync.Mutex
	delays     *backoff.ExponentialBackOff
	generation int // counts the deaths that mattered
	deaths     int // since a new child last answered
	delay      time.Duration
	next       time.Time
	reason     error
}

func newPace() *pace {
	delays := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(200*time.Millisecond),
		backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(0.5),
		backoff.WithMaxInterval(20*time.Second), // up to 30 s, with the jitter
		backoff.WithMaxElapsedTime(0))
	return &pace{delays: delays}
}

// await returns when a child may be started, with the generation that it will be
// of. If that is not soon, it is an error. While children keep dying, one may be
// started in each delay.
func (p *pace) await(ctx context.Context) (generation int, err error) {
	for {
		generation, wait, err := p.ask()
		if err != nil || wait <= 0 {
			return generation, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return 0, waitedInVain(ctx)
		}
	}
}

// ask allows a start if it is not to be waited for.
func (p *pace) ask() (generation int, wait time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	wait = p.next.Sub(now)
	if wait > patience {
		return 0, 0, model.Unavailable(fmt.Errorf("%d children in a row gave no answer, the next may start in %s: %w",
			p.deaths, wait.Round(time.Millisecond), p.reason))
	}
	if wait <= 0 && p.delay > 0 {
		p.next = now.Add(p.delay)
	}
	return p.generation, wait, nil
}

// died counts the death of a child that gave no answer. Children that were
// started side by side, and die side by side, count as one.
func (p *pace) died(generation int, reason error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if generation != p.generation {
		return
	}
	p.generation++
	p.deaths++
	p.reason = reason
	if p.deaths > 1 {
		p.delay = p.delays.NextBackOff()
		p.next = time.Now().Add(p.delay)
	}
}

// answered tells of the first answer of a child. Later ones mean nothing: the
// program may have changed since that child was started.
func (p *pace) answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delays.Reset()
	p.deaths, p.delay, p.next, p.reason = 0, 0, time.Time{}, nil
}
