package processor_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/windrow-go/windrow/model"
	"github.com/windrow-go/windrow/processor"
)

// TestMain leaves the tests one processor: with more, timers of a synctest bubble
// run at once on several threads and crash the race detector (golang/go#78156).
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	goleak.VerifyTestMain(m)
}

type handle = processor.HandlerFunc

// takes returns a handler that works for d, or until its context ends.
func takes(d time.Duration) handle {
	return func(ctx context.Context, _ model.Dataset) (any, error) {
		return nil, work(ctx, d)
	}
}

// work passes time, which in these tests is not real.
func work(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// worker is a processor on its way.
type worker struct {
	*processor.Processor
	t    *testing.T
	stop context.CancelFunc
	logs *observer.ObservedLogs
	end  chan error
}

// start runs a processor inside a synctest bubble.
func start(t *testing.T, store processor.Store, h processor.Handler, opts processor.Options) *worker {
	t.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	opts.Logger = zap.New(core)
	ctx, cancel := context.WithCancel(t.Context())
	w := &worker{Processor: processor.New(store, h, opts), t: t, stop: cancel, logs: logs, end: make(chan error, 1)}
	go func() { w.end <- w.Run(ctx) }()
	synctest.Wait()
	return w
}

// wait returns what Run returned. A Run that doesn't return within a day is an
// error.
func (w *worker) wait() error {
	w.t.Helper()
	defer w.stop()
	select {
	case err := <-w.end:
		return err
	case <-time.After(24 * time.Hour):
		w.t.Fatalf("still running after a day: %+v", w.Stats())
		return nil
	}
}

// running fails the test if Run has returned.
func (w *worker) running() {
	w.t.Helper()
	select {
	case err := <-w.end:
		w.t.Fatalf("Run returned too early: %v", err)
	default:
	}
}

// drain runs a processor with UntilEmpty and expects an orderly end.
func drain(t *testing.T, store processor.Store, h processor.Handler, opts processor.Options) *worker {
	t.Helper()
	opts.UntilEmpty = true
	w := start(t, store, h, opts)
	if err := w.wait(); err != nil {
		t.Fatalf("Run = %v, want nil", err)
	}
	return w
}

// pass lets time go by and everything happen that is to happen in it.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func wantStates(t *testing.T, f *fake, want map[model.State]int) {
	t.Helper()
	got := f.states()
	for s, n := range want {
		if got[s] != n {
			t.Fatalf("states = %v, want %v", got, want)
		}
	}
	if len(got) != len(want) {
		t.Fatalf("states = %v, want %v", got, want)
	}
}

// logged counts the log entries with this message.
func (w *worker) logged(message string) int {
	return w.logs.FilterMessage(message).Len()
}
