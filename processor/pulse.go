package processor

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/windrow-go/windrow/model"
)

const (
	// reportEvery is how often a worker tells of itself while it has work.
	reportEvery = 5 * time.Second
	// lastReport is how long a worker may take to say that it ends.
	lastReport = 5 * time.Second
	// rateWindow is what a rate is taken over.
	rateWindow = time.Minute
)

// pulse keeps the worker's row in the table of workers true. While the worker has
// work, its own goroutine does so; while it waits for some, it is done with the look
// for work, so that an idle worker asks the database for nothing more.
//
// A report is worth nothing to the rows: one that fails is let go.
type pulse struct {
	*worker
	mu       sync.Mutex
	promised time.Duration // until when the database expects no report, by the worker's clock
	rate     meter
	told     bool          // that it may not report
	awake    chan struct{} // a nap has ended
}

// run reports until ctx ends. During naps it rests.
func (p *pulse) run(ctx context.Context) {
	if !p.covers(reportEvery) {
		p.report(ctx, reportEvery)
	}
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !p.napping.Load() {
			p.report(ctx, reportEvery)
			continue
		}
		tick.Stop()
		select {
		case <-ctx.Done():
			return
		case <-p.awake:
		}
		tick.Reset(reportEvery)
	}
}

// covers tells whether the last report, if there was one, is good for d.
func (p *pulse) covers(d time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.promised >= p.now()+d
}

// look asks what there is to wait for, and reports in the same breath, unless half of
// what the last report has promised is left still. covered is for how long the worker
// need not report again.
func (p *pulse) look(ctx context.Context, nap time.Duration) (agenda model.Agenda, covered time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, next := p.now(), max(nap, reportEvery)
	if p.told {
		agenda, err = p.agenda(ctx)
		return agenda, next, err
	}
	if left := p.promised - at; left > next/2 {
		agenda, err = p.agenda(ctx)
		return agenda, left, err
	}
	err = call(ctx, func(ctx context.Context) (err error) {
		agenda, covered, err = p.store.Look(ctx, p.self(at), next)
		return err
	})
	if err == nil {
		p.promised = at + covered
		return agenda, covered, nil
	}
	if errors.Is(err, model.ErrUnavailable) || ctx.Err() != nil {
		return agenda, next, err
	}
	agenda, unseen := p.agenda(ctx)
	if unseen == nil { // so it was the report that failed
		p.notListed(err)
	}
	return agenda, next, unseen
}

func (p *pulse) agenda(ctx context.Context) (agenda model.Agenda, err error) {
	err = call(ctx, func(ctx context.Context) (err error) {
		agenda, err = p.store.Agenda(ctx)
		return err
	})
	return agenda, err
}

// notListed says once that reports are refused.
func (p *pulse) notListed(err error) {
	if !p.told {
		p.told = true
		p.log.Warn("the worker can't be listed among the workers; it goes on without", zap.Error(err))
	}
}

// end says that the worker ends.
func (p *pulse) end() {
	ctx, cancel := context.WithTimeout(context.Background(), lastReport)
	defer cancel()
	p.report(ctx, -1)
}

func (p *pulse) report(ctx context.Context, next time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.outage.phase() == down {
		return
	}
	at := p.now()
	err := call(ctx, func(ctx context.Context) error { return p.store.Report(ctx, p.self(at), next) })
	switch {
	case err == nil:
		p.promised = at + next
	case !errors.Is(err, model.ErrUnavailable) && ctx.Err() == nil:
		p.notListed(err)
	}
}

// self is what the worker tells of itself.
func (p *pulse) self(at time.Duration) model.Worker {
	s := p.counts.snapshot(p.hand)
	return model.Worker{
		Holder: p.opts.Holder, Host: hostName(), PID: os.Getpid(), Program: p.opts.Program,
		Version: p.opts.Version, Slots: p.opts.Concurrency, Lease: p.opts.Lease.Seconds(),
		InFlight: int(p.hand.count.Load()),
		Done:     s.Done, Failed: s.Failed, Retried: s.Retried, Released: s.Released, Lost: s.Lost,
		Rate:    p.rate.at(at, s.Done+s.Failed),
		Trouble: p.breaker.state(),
	}
}

// meter measures a rate over the last minute.
type meter struct{ samples []sample }

type sample struct {
	at time.Duration
	n  int64
}

// at takes one more sample of a growing count and returns the rate, in a second.
func (m *meter) at(at time.Duration, n int64) float64 {
	m.samples = append(m.samples, sample{at, n})
	for len(m.samples) > 2 && m.samples[1].at <= at-rateWindow {
		m.samples = m.samples[1:]
	}
	first := m.samples[0]
	if at <= first.at {
		return 0
	}
	return float64(n-first.n) / (at - first.at).Seconds()
}
