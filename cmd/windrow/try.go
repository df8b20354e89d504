package main

import (
	"context"
	"fmt"

	"github.com/windrow-go/windrow/intake"
	"github.com/windrow-go/windrow/internal/job"
	"github.com/windrow-go/windrow/model"
	"github.com/windrow-go/windrow/processor"
)

// try works the first rows and prints data and result; nothing is stored.
func (a *app) try(ctx context.Context, f *runFlags, inputs []string, handler processor.Handler) error {
	if f.try < 0 {
		return usagef("--try %d: must not be negative", f.try)
	}
	opts, err := f.load.options()
	if err != nil {
		return err
	}
	source, err := intake.Open(inputs, a.stdin, opts)
	if err != nil {
		return err
	}
	defer source.Close()
	failed := 0
	bounded := processor.HandlerFunc(func(ctx context.Context, row model.Dataset) (any, error) {
		if f.handler.timeout > 0 {
			late := fmt.Errorf("timed out after %v", f.handler.timeout)
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, f.handler.timeout, late)
			defer cancel()
		}
		return handler.Handle(ctx, row)
	})
	err = job.Try(ctx, source, f.try, bounded, func(t job.Tried) error {
		outcome := "result  " + string(t.Result)
		if t.Err != nil {
			failed++
			outcome = "error   " + t.Err.Error()
		}
		_, err := fmt.Fprintf(a.stdout, "row %d\n  data    %s\n  %s\n", t.Row.ID, t.Row.Data, outcome)
		return err
	})
	if err != nil {
		return err
	}
	if failed > 0 {
		a.say("%d rows failed", failed)
		return &exitError{code: exitRows}
	}
	return nil
}
