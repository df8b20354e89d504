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

var errRefused = errors.New("connection refused")

// service refuses until it is up, and counts how often it was asked.
type service struct {
	up    atomic.Bool
	asked atomic.Int64
}

func (s *service) Handle(context.Context, model.Dataset) (any, error) {
	s.asked.Add(1)
	if !s.up.Load() {
		return nil, processor.Unavailable(errRefused)
	}
	return nil, nil
}

func TestRowsLoseNoAttemptWhileTheHandlerCannotServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1000)
		s := &service{}
		w := start(t, f, s, processor.Options{Concurrency: 8, UntilEmpty: true, MaxAttempts: 1})
		pass(10 * time.Minute)
		w.running()
		// Eight at once, and then a probe at most each half of the longest pause.
		if n := s.asked.Load(); n < 20 || n > 70 {
			t.Errorf("asked %d times in ten minutes of trouble", n)
		}
		if trouble := w.Stats().Trouble; !strings.Contains(trouble, "connection refused") {
			t.Errorf("trouble: %q", trouble)
		}
		s.up.Store(true)
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
		wantStates(t, f, map[model.State]int{model.Done: 1000})
		for _, r := range f.rows {
			if r.Attempts != 1 {
				t.Fatalf("row %d has had %d attempts", r.ID, r.Attempts)
			}
		}
		if w.Stats().Trouble != "" {
			t.Errorf("trouble is over, but: %q", w.Stats().Trouble)
		}
		for _, message := range []string{"slowing down: the handler can't serve", "the handler serves again"} {
			if n := w.logs.FilterMessage(message).Len(); n != 1 {
				t.Errorf("%q was said %d times", message, n)
			}
		}
		if n := w.logs.FilterMessage("row failed").Len(); n != 0 {
			t.Errorf("%d rows were said to have failed", n)
		}
	})
}

func TestRetryAfterOfAServiceIsHeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var again time.Duration
		drain(t, newFake(1), handle(func(context.Context, model.Dataset) (any, error) {
			if time.Since(begun) < time.Minute {
				if time.Since(begun) > 0 {
					t.Errorf("asked again after %v", time.Since(begun))
				}
				return nil, processor.Unavailable(processor.RetryAfter(time.Minute, errors.New("too many requests")))
			}
			again = time.Since(begun)
			return nil, nil
		}), processor.Options{})
		if again > time.Minute+time.Second {
			t.Errorf("asked again after %v, want a minute", again)
		}
	})
}

func TestRowThatIsRefusedWhileOthersSucceedPaysFromTheThirdTimeOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(200)
		drain(t, f, handle(func(ctx context.Context, row model.Dataset) (any, error) {
			if row.ID == 7 {
				_ = work(ctx, 20*time.Millisecond) // so that others succeed meanwhile
				return nil, processor.Unavailable(errRefused)
			}
			f.add(min(1, 4000-int(row.ID))) // there is always other work
			return nil, work(ctx, 10*time.Millisecond)
		}), processor.Options{Concurrency: 4, MaxAttempts: 3, RetryMin: 10 * time.Millisecond, RetryMax: 10 * time.Millisecond})
		r := f.row(7)
		if !r.IsProcessed || r.Error == nil || r.Checkouts != 5 || r.Attempts != 3 {
			t.Fatalf("after %d check-outs and %d attempts: %v", r.Checkouts, r.Attempts, r)
		}
	})
}

func TestTwentyFailuresInARowAreBlamedOnTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(100)
		broken := atomic.Bool{}
		broken.Store(true)
		w := start(t, f, handle(func(context.Context, model.Dataset) (any, error) {
			if broken.Load() {
				return nil, errors.New("exit status 1")
			}
			return nil, nil
		}), processor.Options{Concurrency: 2, UntilEmpty: true})
		pass(8 * time.Second)
		if trouble := w.Stats().Trouble; !strings.Contains(trouble, "20 rows failed one after the other: exit status 1") {
			t.Errorf("trouble: %q", trouble)
		}
		if n := w.Stats().Calls; n > 40 {
			t.Errorf("%d calls", n)
		}
		broken.Store(false)
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
		wantStates(t, f, map[model.State]int{model.Done: 100})
	})
}

func TestHandlerThatAlwaysFailsComesToAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(60)
		drain(t, f, handle(func(_ context.Context, row model.Dataset) (any, error) {
			return nil, fmt.Errorf("no luck with %d", row.ID)
		}), processor.Options{MaxAttempts: 2})
		wantStates(t, f, map[model.State]int{model.Failed: 60})
	})
}

func TestHopelessRowsAreNoTroubleOfTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(500)
		begun := time.Now()
		drain(t, f, handle(func(context.Context, model.Dataset) (any, error) {
			return nil, processor.Permanent(errors.New("bad data"))
		}), processor.Options{})
		wantStates(t, f, map[model.State]int{model.Failed: 500})
		if took := time.Since(begun); took > time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestStopDuringTroubleEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(10)
		w := start(t, f, &service{}, processor.Options{})
		pass(time.Minute)
		begun := time.Now()
		w.stop()
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("it took %v", took)
		}
		if n := f.heldNow(); n != 0 {
			t.Errorf("%d rows are still held", n)
		}
	})
}

func TestRateIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		drain(t, newFake(120), takes(0), processor.Options{Concurrency: 8, Rate: 2})
		if took := time.Since(begun); took < 59*time.Second || took > 61*time.Second {
			t.Errorf("120 rows at 2 a second took %v", took)
		}
	})
}
