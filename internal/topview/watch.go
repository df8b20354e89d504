package topview

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/errorgroups"
)

const (
	// every is the time from one look at the job to the next; a look that takes longer
	// is followed by as long a rest.
	every = time.Second
	// lookTimeout bounds a look at the job, and a pause or its end.
	lookTimeout = 5 * time.Second
	// errorsEvery is the time from one reading of the errors to the next; errorsRetry
	// that after one that failed.
	errorsEvery = 30 * time.Second
	errorsRetry = 5 * time.Second
	// Reading the errors ends after so many rows, or so much time, if not before: the
	// commonest show up among these, and a database with millions of failed rows is
	// left in peace. errorsTimeout is for one that does not answer.
	mostErrors    = 20_000
	errorsBudget  = 3 * time.Second
	errorsTimeout = 10 * time.Second
)

// Job is a job as the view needs it.
type Job interface {
	Overview(ctx context.Context, exact bool) (checkout.Overview, error)
	Failures(ctx context.Context, each func(checkout.Failure) error) error
	Pause(ctx context.Context, by string) error
	Resume(ctx context.Context) error
}

// watch is the goroutines that ask the database, so that the screen never waits for
// it. What they find out they tell as changes of the state, which the screen's own
// goroutine makes.
type watch struct {
	job     Job
	by      string
	explain func(error) string

	changes chan func(*State)
	again   chan struct{} // the errors are to be read now
	running sync.WaitGroup
}

// start runs f beside the screen. A panic in it becomes one of the screen's, which
// gives the terminal back first.
func (w *watch) start(ctx context.Context, f func(context.Context)) {
	w.running.Add(1)
	go func() {
		defer w.running.Done()
		defer func() {
			if v := recover(); v != nil {
				stack := debug.Stack()
				w.tell(ctx, func(*State) { panic(fmt.Sprintf("%v\n\n%s", v, stack)) })
			}
		}()
		f(ctx)
	}()
}

// tell hands a change over, unless the view ends.
func (w *watch) tell(ctx context.Context, change func(*State)) {
	select {
	case w.changes <- change:
	case <-ctx.Done():
	}
}

// looks watches the job until ctx ends.
func (w *watch) looks(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		var overview checkout.Overview
		err := w.within(ctx, lookTimeout, func(ctx context.Context) (err error) {
			overview, err = w.job.Overview(ctx, false)
			return err
		})
		at := time.Now()
		w.tell(ctx, func(s *State) {
			if err != nil {
				s.Lost(w.explain(err), at)
			} else {
				s.Saw(overview, at)
			}
		})
		took := at.Sub(began)
		select {
		case <-ctx.Done():
		case <-time.After(max(every-took, took)):
		}
	}
}

// within bounds a call, and says how long it was waited for.
func (w *watch) within(ctx context.Context, limit time.Duration, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v", limit))
	defer cancel()
	err := call(ctx)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return context.Cause(ctx)
	}
	return err
}

// readings reads the errors now, and then every so often or when asked.
func (w *watch) readings(ctx context.Context) {
	for ctx.Err() == nil {
		w.tell(ctx, func(s *State) { s.Errors.Reading = true })
		next := errorsEvery
		found, err := w.readErrors(ctx)
		if err != nil {
			next = errorsRetry
		}
		w.tell(ctx, func(s *State) {
			if err != nil {
				s.Errors.Trouble, s.Errors.Reading = w.explain(err), false
			} else {
				s.Errors = found
			}
		})
		select {
		case <-ctx.Done():
		case <-w.again:
		case <-time.After(next):
		}
	}
}

// errEnough ends the reading of errors.
var errEnough = errors.New("enough errors read")

// readErrors groups the errors of the first rows that have one.
func (w *watch) readErrors(ctx context.Context) (Errors, error) {
	groups := errorgroups.New(false)
	found := Errors{}
	began := time.Now()
	err := w.within(ctx, errorsTimeout, func(ctx context.Context) error {
		// Without the cancel, the driver reads the rest of the answer: 5.4 s instead of
		// 0.2 s where 600,000 rows of 400 bytes had failed (2026-11). It costs the
		// connection.
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		return w.job.Failures(ctx, func(f checkout.Failure) error {
			if found.Rows == mostErrors || time.Since(began) > errorsBudget {
				found.Cut = true
				cancel()
				return errEnough
			}
			groups.Add(f)
			found.Rows++
			return nil
		})
	})
	if err != nil && !errors.Is(err, errEnough) {
		return found, err
	}
	found.Groups, found.Others = groups.Report()
	found.ReadAt = time.Now()
	return found, nil
}

// do what a key asks for, apart from quitting.
func (w *watch) do(ctx context.Context, action Action) {
	switch action {
	case Pause:
		w.start(ctx, func(ctx context.Context) {
			w.change(ctx, "paused", func(ctx context.Context) error { return w.job.Pause(ctx, w.by) })
		})
	case Resume:
		w.start(ctx, func(ctx context.Context) { w.change(ctx, "resumed", w.job.Resume) })
	case ReadErrors:
		select {
		case w.again <- struct{}{}:
		default: // is asked for already
		}
	}
}

// change makes a change of the job, and says what came of it.
func (w *watch) change(ctx context.Context, done string, call func(context.Context) error) {
	note := done
	if err := w.within(ctx, lookTimeout, call); err != nil {
		note = "not " + done + ": " + w.explain(err)
	}
	at := time.Now()
	w.tell(ctx, func(s *State) { s.Say(note, at) })
}
