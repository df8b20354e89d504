package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/gofrs/flock"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/windrow-go/windrow/processor"
)

func (a *app) workCommand() *cobra.Command {
	var h handlerFlags
	var w workerFlags
	var m metricsFlags
	var untilEmpty bool
	cmd := &cobra.Command{
		Use:   "work HANDLER [flags]",
		Short: "Work rows, on as many machines as you like",
		Long: `Check rows out, work them, check their results in, until stopped. Start as many
as you like, on as many machines as you like. The first SIGTERM or Ctrl-C lets
the rows being worked finish (--grace) and gives the others back; the second ends
at once, and what it held is back within a lease.
` + handlerHelp,
		Example: `  windrow work --jq '{id: .user_id, score: (.a + .b)}' -j 8
  windrow work --exec 'python3 label.py' --timeout 2m --until-empty
  windrow work -j 16 -- ./resize --size 640 {path}`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			command, err := afterDash(cmd, args, 0)
			if err != nil {
				return err
			}
			handler, err := h.build(a, w.slots(), command)
			if err != nil {
				return err
			}
			defer handler.Close()
			opts, err := w.options(a, handler)
			if err != nil {
				return err
			}
			opts.UntilEmpty = untilEmpty
			stop, err := m.serve(cmd.Context(), a)
			if err != nil {
				return err
			}
			defer stop()
			return a.work(cmd.Context(), handler.handler(), opts)
		},
	}
	h.add(cmd.Flags())
	w.add(cmd.Flags(), "none")
	m.add(cmd.Flags())
	cmd.Flags().BoolVar(&untilEmpty, "until-empty", false, "end when nothing is left to work, held by anybody, or waiting for a retry")
	return cmd
}

// afterDash returns what stands behind --; at most n other arguments may stand
// before it.
func afterDash(cmd *cobra.Command, args []string, n int) ([]string, error) {
	dash := cmd.ArgsLenAtDash()
	if dash < 0 {
		dash = len(args)
	}
	if dash > n {
		return nil, usagef("unexpected argument %q; a command to run stands behind --", args[n])
	}
	return args[dash:], nil
}

func (a *app) work(ctx context.Context, handler processor.Handler, opts processor.Options) error {
	s, err := a.open(ctx, false)
	if err != nil && stoppedBy(ctx) != nil && !opts.UntilEmpty {
		return nil // an orderly stop, before anything was begun
	}
	if err != nil {
		return err
	}
	defer s.Close()
	return a.workOn(ctx, s, handler, opts)
}

// workOn runs one worker on an open job, and says what it has come to.
func (a *app) workOn(ctx context.Context, s store, handler processor.Handler, opts processor.Options) error {
	unlock, err := lockFile(a.address(), (*flock.Flock).TryRLock)
	if err != nil {
		return err
	}
	defer unlock()
	var total int64
	if isTerminal(a.stderr) && !a.quiet {
		overview, err := s.Overview(ctx, false)
		if err != nil {
			return err
		}
		total = overview.Counts.Unprocessed()
	}
	stats, took, err := a.process(ctx, s, handler, opts, total)
	a.say("%s", summary(stats, took))
	if stats.Failed > 0 {
		a.say("look at the failed rows:  %s\ncount their errors:       %s\nput them back:            %s", a.again("export --state failed"), a.again("errors"), a.again("reprocess --failed"))
	}
	return workResult(ctx, opts, stats, err)
}

// workResult turns how a worker ended into the exit code.
func workResult(ctx context.Context, opts processor.Options, stats processor.Stats, err error) error {
	var tooMany *processor.TooManyFailures
	var spent *processor.CostReached
	switch signal := stoppedBy(ctx); {
	case errors.As(err, &tooMany), errors.As(err, &spent):
		return &exitError{code: exitRows, err: err}
	case err != nil:
		return err
	case signal != nil && opts.UntilEmpty:
		return signal
	case signal == nil && stats.Failed > 0:
		return &exitError{code: exitRows}
	}
	return nil
}

// process runs one worker, with an eye on its plans, and shows how far it has come.
func (a *app) process(ctx context.Context, s processor.Store, handler processor.Handler, opts processor.Options, total int64) (processor.Stats, time.Duration, error) {
	p := processor.New(a.metrics.Store(s), a.metrics.Handler(handler), opts)
	ended := a.metrics.Working(ctx, p.Stats, opts.Grace)
	began := time.Now()
	bar := a.display.Begin("work", total, func() (int64, int64) {
		stats := p.Stats()
		return stats.Done + stats.Failed, 0
	})
	guarded, done := context.WithCancel(ctx)
	var guard errgroup.Group
	if checker, ok := s.(planChecker); ok {
		guard.Go(func() error {
			guardPlans(guarded, checker, a.log)
			return nil
		})
	}
	err := p.Run(ctx)
	ended()
	done()
	_ = guard.Wait() // always nil
	bar.End()
	return p.Stats(), time.Since(began), err
}

// summary is what a worker says in the end.
func summary(stats processor.Stats, took time.Duration) string {
	parts := []string{humanize.Comma(stats.Done) + " done", humanize.Comma(stats.Failed) + " failed"}
	optional := func(n int64, what string) {
		if n > 0 {
			parts = append(parts, humanize.Comma(n)+" "+what)
		}
	}
	optional(stats.Retried, "retries")
	optional(stats.Released, "given back")
	optional(stats.Lost, "lost to another worker")
	if stats.Cost > 0 {
		parts = append(parts, fmt.Sprintf("cost %.6g", stats.Cost))
	}
	rate := float64(stats.Done+stats.Failed) / max(took.Seconds(), 1e-3)
	return fmt.Sprintf("%s in %s (%s rows/s)", strings.Join(parts, ", "), roundTime(took), humanize.Comma(int64(rate)))
}

// roundTime keeps about three digits.
func roundTime(d time.Duration) time.Duration {
	switch {
	case d > time.Minute:
		return d.Round(time.Second)
	case d > time.Second:
		return d.Round(10 * time.Millisecond)
	default:
		return d.Round(time.Millisecond)
	}
}
