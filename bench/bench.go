package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/windrow-go/windrow/internal/database"
)

// Options say what to measure, and how. Zero values mean the scenario's own.
type Options struct {
	// Database is the address of a PostgreSQL server; empty: a private one is
	// started, and removed at the end. On a given server a schema with a random
	// name is made, and dropped at the end; nothing else is touched.
	Database    string
	Rows        int
	Processes   int
	Concurrency int
	Batch       int
	Payload     int
	Seconds     float64
	// Rounds is how often each run is made, the subjects in turn; default 1.
	Rounds int
	// Subjects leaves out those that are not named; empty: all of the scenario.
	Subjects []string
	// Progress shows a stretch of work until the function that it returns is
	// called; nil: nothing is shown.
	Progress func(what string, total int64, done func() int64) (stop func())
	// Say tells what is about to happen; nil: nobody is told.
	Say func(text string)
	// Done is given every result as soon as it is there.
	Done func(Result)
}

// Bench is the measuring of one scenario.
type Bench struct {
	opts   Options
	target *target
}

// Run measures a scenario. A *[Unsound] error says that rows were lost or doubled.
func Run(ctx context.Context, scenario string, opts Options) (err error) {
	s, ok := find(scenario)
	if !ok {
		return fmt.Errorf("unknown scenario %q: use %s", scenario, strings.Join(Names(), ", "))
	}
	opts.Rounds = cmp.Or(opts.Rounds, 1)
	b := &Bench{opts: opts}
	b.announce(s)
	open := openTarget
	if s.embedded {
		open = openFolder
	}
	if b.target, err = open(ctx, opts.Database); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.target.close(context.WithoutCancel(ctx))) }()
	for round := 1; round <= opts.Rounds; round++ {
		plans, err := b.chosen(s)
		if err != nil {
			return err
		}
		for _, p := range plans {
			p.Scenario, p.Round = scenario, round
			if err := b.one(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// chosen are the scenario's plans of the subjects asked for.
func (b *Bench) chosen(s scenario) ([]plan, error) {
	plans := s.plans(b)
	var known []string
	for _, p := range plans {
		known = append(known, p.Subject)
	}
	for _, subject := range b.opts.Subjects {
		if !slices.Contains(known, subject) {
			slices.Sort(known)
			return nil, fmt.Errorf("%s has no subject %q: use %s", s.name, subject, strings.Join(slices.Compact(known), ", "))
		}
	}
	return slices.DeleteFunc(plans, func(p plan) bool {
		return len(b.opts.Subjects) > 0 && !slices.Contains(b.opts.Subjects, p.Subject)
	}), nil
}

func (b *Bench) announce(s scenario) {
	where := "on a private PostgreSQL, which is removed at the end"
	switch {
	case s.embedded:
		where = "on an SQLite file in a temporary folder"
	case b.opts.Database != "":
		where = fmt.Sprintf("on %s, in a schema windrow_bench_… of its own, which is dropped at the end", database.ServerName(b.opts.Database))
	}
	if b.opts.Say != nil {
		b.opts.Say(s.name + ": " + where)
	}
}

func (b *Bench) one(ctx context.Context, p plan) error {
	var first int64
	if p.fill != nil {
		if err := p.fill(ctx); err != nil {
			return err
		}
	} else {
		stop := b.progress(fmt.Sprintf("filling for %s %s %s", p.Scenario, p.Subject, p.Case), 0, func() int64 { return 0 })
		var err error
		first, err = b.target.fill(ctx, p.Parameters.Rows, p.Parameters.Payload)
		stop()
		if err != nil {
			return err
		}
	}
	measure := b.run
	if p.measure != nil {
		measure = p.measure
	}
	r, err := measure(ctx, p, first)
	if err != nil {
		return err
	}
	if b.opts.Done != nil {
		b.opts.Done(r)
	}
	return nil
}

func (b *Bench) progress(what string, total int64, done func() int64) (stop func()) {
	if b.opts.Progress == nil {
		return func() {}
	}
	return b.opts.Progress(what, total, done)
}

// parameters are what the options say, and the scenario's own where they say
// nothing.
func (b *Bench) parameters(own Parameters) Parameters {
	return Parameters{
		Rows:        cmp.Or(b.opts.Rows, own.Rows),
		Processes:   cmp.Or(b.opts.Processes, own.Processes),
		Concurrency: cmp.Or(b.opts.Concurrency, own.Concurrency, 4),
		Batch:       cmp.Or(b.opts.Batch, own.Batch),
		Payload:     cmp.Or(b.opts.Payload, own.Payload, 200),
		Seconds:     cmp.Or(b.opts.Seconds, own.Seconds),
	}
}
