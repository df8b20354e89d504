package job

import (
	"context"
	"time"

	"github.com/windrow-go/windrow/model"
)

const (
	// share is how much of the time rows are put back while workers are at work; the
	// rest of it is theirs alone.
	share = 0.25
	// looksEvery is how often it is looked whether workers are at work.
	looksEvery = 5 * time.Second
)

// Pace leaves the database to the workers most of the time, while there are some.
type Pace struct {
	Workers func(ctx context.Context) ([]model.Worker, time.Time, error)

	looked time.Time
	busy   bool
}

// Rest sleeps after a transaction that took so long. It returns ctx's error when ctx
// ends.
func (p *Pace) Rest(ctx context.Context, took time.Duration) error {
	if took == 0 || !p.isBusy(ctx) {
		return ctx.Err()
	}
	timer := time.NewTimer(time.Duration(float64(took) * (1 - share) / share))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// isBusy tells whether a worker is at work. If that can't be found out, it is taken
// for granted.
func (p *Pace) isBusy(ctx context.Context) bool {
	if time.Since(p.looked) < looksEvery {
		return p.busy
	}
	workers, now, err := p.Workers(ctx)
	p.looked, p.busy = time.Now(), err != nil
	for _, w := range workers {
		p.busy = p.busy || w.IsThere(now) && (w.Rate > 0 || w.InFlight > 0)
	}
	return p.busy
}
