package processor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windrow-go/windrow/model"
	"github.com/windrow-go/windrow/processor"
)

func TestRefusedCheckInIsHalvedUntilTheGuiltyRowsAreAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(500)
		f.refuse = func(c model.CheckIn) error {
			if string(c.Result) == `"bad"` {
				return fmt.Errorf("check in: %w: out of range\x00", model.ErrRefused)
			}
			return nil
		}
		w := drain(t, f, handle(func(_ context.Context, row model.Dataset) (any, error) {
			if row.ID%100 == 7 {
				return "bad", nil
			}
			return row.ID, nil
		}), processor.Options{})
		wantStates(t, f, map[model.State]int{model.Done: 495, model.Failed: 5})
		if got := text(f.row(107).Error); !strings.Contains(got, "out of range\ufffd") {
			t.Errorf("error = %q", got)
		}
		if r := f.row(108); string(r.Result) != "108" {
			t.Errorf("result of a neighbour = %s", r.Result)
		}
		if s := w.Stats(); s.Failed != 5 || s.Done != 495 || s.Calls != 500 {
			t.Errorf("stats = %+v", s)
		}
	})
}

func TestRefusedReasonIsReplacedByPlainWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1)
		f.refuse = func(c model.CheckIn) error {
			if c.Verdict != model.VerdictFailed || strings.Contains(c.Error, "because") {
				return fmt.Errorf("%w because of its nature", model.ErrRefused)
			}
			return nil
		}
		drain(t, f, takes(0), processor.Options{})
		if got := text(f.row(1).Error); got != model.ErrRefused.Error() {
			t.Errorf("error = %q", got)
		}
	})
}

func TestDatabaseThatRefusesEverythingEndsTheWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(3)
		f.refuse = func(model.CheckIn) error { return model.ErrRefused }
		w := start(t, f, takes(0), processor.Options{})
		if err := w.wait(); err == nil || !strings.Contains(err.Error(), "check in") {
			t.Fatalf("Run = %v", err)
		}
		wantStates(t, f, map[model.State]int{model.Fresh: 3})
	})
}

func TestRowThatLostItsWorkerRunsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(60, func(r *model.Dataset) {
			if r.ID%10 == 3 {
				r.Losses, r.Attempts = 1, 1
			}
		})
		var busy, together atomic.Int64
		drain(t, f, handle(func(ctx context.Context, row model.Dataset) (any, error) {
			n := busy.Add(1)
			defer busy.Add(-1)
			if row.Losses > 0 && (n > 1 || f.heldNow() > 1) {
				together.Add(1)
			}
			err := work(ctx, 3*time.Millisecond)
			if row.Losses > 0 && busy.Load() > 1 {
				together.Add(1)
			}
			return nil, err
		}), processor.Options{Concurrency: 4})
		if n := together.Load(); n > 0 {
			t.Errorf("a row that lost its worker ran while others were held %d times", n)
		}
		wantStates(t, f, map[model.State]int{model.Done: 60})
	})
}

func TestRowsThatWaitForALongRowAloneAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(20, func(r *model.Dataset) {
			if r.ID == 2 {
				r.Losses = 1
			}
		})
		w := start(t, f, handle(func(ctx context.Context, row model.Dataset) (any, error) {
			if row.Losses > 0 {
				return nil, work(ctx, time.Hour)
			}
			return nil, work(ctx, time.Second)
		}), processor.Options{Concurrency: 4, UntilEmpty: true})
		pass(30 * time.Minute)
		if s := w.Stats(); s.Busy != 1 || s.Buffered != 0 {
			t.Errorf("stats = %+v, want only the row alone in hand", s)
		}
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
		wantStates(t, f, map[model.State]int{model.Done: 20})
	})
}

func TestRowThatKilledItsWorkersTooOftenFailsUntried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2, func(r *model.Dataset) {
			r.Losses = int32(r.ID) + 2 // 3 and 4
			r.Attempts = r.Losses
		})
		w := drain(t, f, takes(0), processor.Options{MaxAttempts: 3})
		wantStates(t, f, map[model.State]int{model.Done: 1, model.Failed: 1})
		if got := text(f.row(2).Error); got != "its worker was lost 4 times while processing this row" {
			t.Errorf("error = %q", got)
		}
		if s := w.Stats(); s.Calls != 1 || s.FailedCalls != 0 {
			t.Errorf("stats = %+v", s)
		}
	})
}

func TestLossesDoNotUseUpTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1, func(r *model.Dataset) { r.Losses, r.Attempts = 2, 2 })
		w := drain(t, f, handle(func(context.Context, model.Dataset) (any, error) {
			return nil, errors.New("no luck")
		}), processor.Options{MaxAttempts: 3})
		if s := w.Stats(); s.Calls != 3 {
			t.Errorf("%d tries, want 3", s.Calls)
		}
	})
}

func TestTooManyFailuresEndTheWorker(t *testing.T) {
	odd := handle(func(ctx context.Context, row model.Dataset) (any, error) {
		if err := work(ctx, time.Millisecond); err != nil {
			return nil, err
		}
		switch {
		case row.ID%4 == 0:
			return nil, nil
		case row.ID%4 == 1:
			return nil, processor.Permanent(errors.New("rare"))
		default:
			return nil, processor.Permanent(errors.New("frequent"))
		}
	})
	tests := []struct {
		name   string
		budget processor.Budget
		ends   bool
	}{
		{"share exceeded", processor.Budget{Share: 0.5}, true},
		{"share kept", processor.Budget{Share: 0.8}, false},
		{"count exceeded", processor.Budget{Count: 20}, true},
		{"count kept", processor.Budget{Count: 750}, false},
		{"no budget", processor.Budget{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(1000)
				w := start(t, f, odd, processor.Options{Concurrency: 2, UntilEmpty: true, MaxFailures: tt.budget})
				err := w.wait()
				too, ok := errors.AsType[*processor.TooManyFailures](err)
				if ok != tt.ends || !tt.ends && err != nil {
					t.Fatalf("Run = %v", err)
				}
				if s := w.Stats(); tt.ends && (s.Claimed == 1000 || s.Done+s.Failed+s.Released != s.Claimed) {
					t.Errorf("stats = %+v", s)
				}
				if n := f.states()[model.InFlight]; n != 0 {
					t.Errorf("%d rows are still held", n)
				}
				if ok && (too.Commonest[0].Text != "frequent" || !strings.Contains(err.Error(), "× frequent")) {
					t.Errorf("error = %v", err)
				}
			})
		})
	}
}

func TestFewRowsAreTooFewToJudgeAShareBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		drain(t, newFake(99), handle(func(context.Context, model.Dataset) (any, error) {
			return nil, processor.Permanent(errors.New("no luck"))
		}), processor.Options{MaxFailures: processor.Budget{Share: 0.5}})
	})
}

func TestInvalidOptionsAreNamedByRun(t *testing.T) {
	tests := []struct {
		name string
		opts processor.Options
		want string
	}{
		{"concurrency", processor.Options{Concurrency: -1}, "concurrency -1"},
		{"lease", processor.Options{Lease: time.Millisecond}, "lease 1ms"},
		{"timeout", processor.Options{Timeout: -1}, "timeout"},
		{"attempts", processor.Options{MaxAttempts: -1}, "max attempts"},
		{"delays", processor.Options{RetryMin: time.Minute, RetryMax: time.Second}, "longest retry delay 1s"},
		{"negative delay", processor.Options{RetryMin: -1}, "shortest retry delay"},
		{"batch", processor.Options{MaxBatch: -5}, "max batch"},
		{"share", processor.Options{MaxFailures: processor.Budget{Share: 50}}, "share of failures 50"},
		{"count", processor.Options{MaxFailures: processor.Budget{Count: -1}}, "number of failures"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := processor.New(newFake(0), takes(0), tt.opts).Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Run = %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestHolderIsUniqueForEachStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		holders := map[string]bool{}
		note := handle(func(_ context.Context, row model.Dataset) (any, error) {
			holders[*row.CheckedOutBy] = true
			return nil, processor.RetryAfter(time.Hour, errors.New("later"))
		})
		for range 2 {
			w := start(t, f, note, processor.Options{Concurrency: 1, MaxBatch: 1})
			pass(time.Second)
			w.stop()
			_ = w.wait()
			pass(time.Hour)
		}
		if len(holders) != 2 {
			t.Errorf("holders = %v, want two", holders)
		}
	})
}

func TestRunRefusesToRunTwiceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, newFake(0), takes(0), processor.Options{})
		if err := w.Run(t.Context()); err == nil {
			t.Error("a second Run was let through")
		}
		w.stop()
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.Run(ctx); err != nil {
			t.Errorf("Run after the end of the first = %v", err)
		}
	})
}

func TestRunNeedsAStoreAndAHandler(t *testing.T) {
	if err := processor.New(nil, takes(0), processor.Options{}).Run(t.Context()); err == nil {
		t.Error("Run without a store was let through")
	}
	if err := processor.New(newFake(0), nil, processor.Options{}).Run(t.Context()); err == nil {
		t.Error("Run without a handler was let through")
	}
}
