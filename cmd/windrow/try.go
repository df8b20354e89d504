package main

import (
	"context"
	"fmt"
	"strconv"

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
	source, err := intake.Open(inputs, untilDone(ctx, a.stdin), opts)
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
	trial := &job.Trial{Source: source, Rows: f.try, Key: f.load.key, Handler: bounded}
	if f.load.rejects != "" {
		trial.Reject = func(bad *intake.BadRecord) error {
			a.say("passed over: %v", bad)
			return nil
		}
	}
	err = trial.Run(ctx, func(t job.Tried) error {
		outcome := "result  " + string(t.Result)
		if t.Err != nil {
			failed++
			outcome = "error   " + t.Err.Error()
		}
		key := ""
		if t.Row.Key != nil {
			key = ", key " + strconv.Quote(*t.Row.Key)
		}
		_, err := fmt.Fprintf(a.stdout, "row %d%s\n  data    %s\n  %s\n", t.Row.ID, key, t.Row.Data, outcome)
		return err
	})
	if err != nil {
		return err
	}
	if failed > 0 {
		a.say("%s failed", plural(int64(failed), "row"))
		return &exitError{code: exitRows}
	}
	return nil
}
