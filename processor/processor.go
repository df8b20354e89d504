package processor

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// Processor works through the rows of a table with a [Handler].
type Processor struct {
	store   Store
	handler Handler
	opts    Options
	counts  counts
	worker  atomic.Pointer[worker] // of the present or last run
	running atomic.Bool
}

// New makes a processor; faults in opts are reported by [Processor.Run].
func New(store Store, handler Handler, opts Options) *Processor {
	return &Processor{store: store, handler: handler, opts: opts}
}

// Run checks out, processes and checks in until ctx ends or, with
// Options.UntilEmpty, until nothing is left to do; it returns nil then. Other
// ends are faults in the options, an error of the store that waiting can't mend,
// a [*TooManyFailures] and a [*StuckError]; whatever could be given back has been.
// All goroutines have ended when it returns, but for those of a StuckError.
//
// It may be called again after it has returned, but not twice at once.
func (p *Processor) Run(ctx context.Context) error {
	opts := p.opts.withDefaults()
	if p.store == nil || p.handler == nil {
		return errors.New("processor: a store and a handler are needed")
	}
	if err := opts.validate(); err != nil {
		return fmt.Errorf("processor: %w", err)
	}
	if _, can := p.handler.(BatchHandler); opts.BatchRows > 1 && !can {
		return fmt.Errorf("processor: options: rows of a batch %d: the handler takes one row at a time", opts.BatchRows)
	}
	if !p.running.CompareAndSwap(false, true) {
		return errors.New("processor: it is running already; make another one")
	}
	defer p.running.Store(false)
	w := newWorker(p.store, p.handler, opts, &p.counts)
	p.worker.Store(w)
	return w.run(ctx)
}

// Stats tells what has been done since New. It is cheap, and may be called at
// any time.
func (p *Processor) Stats() Stats {
	w := p.worker.Load()
	if w == nil {
		return p.counts.snapshot(nil)
	}
	s := p.counts.snapshot(w.hand)
	s.AtRisk, s.Trouble = w.atRisk(), w.breaker.state()
	return s
}
