package processor_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windrow-go/windrow/model"
	"github.com/windrow-go/windrow/processor"
)

// quickThenSlow makes the worker believe that rows are quick, so that it buffers
// some, and then keeps its slots busy for d.
func quickThenSlow(d time.Duration) handle {
	return func(ctx context.Context, row model.Dataset) (any, error) {
		if row.ID <= 500 {
			return nil, nil
		}
		return nil, work(ctx, d)
	}
}

func TestStopReleasesWhatHasNotStartedAndFinishesTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2000)
		w := start(t, f, quickThenSlow(20*time.Second), processor.Options{Concurrency: 4})
		pass(time.Second)
		if s := w.Stats(); s.Buffered < 100 {
			t.Fatalf("stats = %+v; the test needs a buffer", s)
		}
		begun := time.Now()
		w.stop()
		pass(100 * time.Millisecond)
		wantStates(t, f, map[model.State]int{model.Done: 500, model.InFlight: 4, model.Fresh: 1496})
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(begun); d > 20*time.Second {
			t.Errorf("the stop took %v", d)
		}
		wantStates(t, f, map[model.State]int{model.Done: 504, model.Fresh: 1496})
		for id := int64(505); id <= 2000; id++ {
			if r := f.row(id); r.Attempts != 0 || r.Losses != 0 {
				t.Fatalf("row %d was released with %d attempts, %d losses", id, r.Attempts, r.Losses)
			}
		}
	})
}

func TestAfterTheGracePeriodHandlersAreCancelledAndTheirRowsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(4)
		causes := make(chan error, 4)
		w := start(t, f, handle(func(ctx context.Context, row model.Dataset) (any, error) {
			err := work(ctx, time.Hour)
			causes <- context.Cause(ctx)
			switch row.ID {
			case 1:
				return nil, err
			case 2:
				return "saved", nil
			case 3:
				return nil, processor.Permanent(errors.New("hopeless"))
			default:
				return nil, errors.New("signal: killed")
			}
		}), processor.Options{Concurrency: 4, Grace: 10 * time.Second})
		begun := time.Now()
		w.stop()
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(begun); d < 10*time.Second || d > 11*time.Second {
			t.Errorf("the stop took %v, want the grace period", d)
		}
		for range 4 {
			if err := <-causes; !errors.Is(err, processor.ErrStopping) {
				t.Errorf("cause = %v", err)
			}
		}
		wantStates(t, f, map[model.State]int{model.Fresh: 2, model.Done: 1, model.Failed: 1})
		if r := f.row(1); r.Attempts != 0 {
			t.Errorf("row 1 was given back with %d attempts", r.Attempts)
		}
		if s := w.Stats(); s.Released != 2 || s.FailedCalls != 1 {
			t.Errorf("stats = %+v", s)
		}
	})
}

func TestStopDoesNotWaitForAHandlerThatIgnoresItsCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		let := make(chan struct{})
		w := start(t, f, handle(func(_ context.Context, row model.Dataset) (any, error) {
			if row.ID == 2 {
				<-let
			}
			return nil, nil
		}), processor.Options{Concurrency: 2, Grace: time.Second})
		begun := time.Now()
		w.stop()
		err := w.wait()
		if stuck, ok := errors.AsType[*processor.StuckError](err); !ok || len(stuck.Rows) != 1 || stuck.Rows[0] != 2 {
			t.Errorf("Run = %v, want row 2 named", err)
		}
		if d := time.Since(begun); d > 7*time.Second {
			t.Errorf("the stop took %v", d)
		}
		close(let) // it may come back even then
		synctest.Wait()
	})
}

// slowClaims answers a check-out only after a while.
type slowClaims struct {
	*fake
	d   time.Duration
	cut atomic.Bool
}

func (s *slowClaims) CheckOut(ctx context.Context, holder string, lease time.Duration, n int) ([]model.Claim, error) {
	claims, err := s.fake.CheckOut(ctx, holder, lease, n)
	if e := work(ctx, s.d); e != nil {
		s.cut.Store(true)
		return nil, e
	}
	return claims, err
}

func TestCheckOutUnderWayAtAStopMayEndAndIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowClaims{fake: newFake(10), d: 3 * time.Second}
		w := start(t, s, takes(0), processor.Options{Concurrency: 10})
		w.stop()
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
		if s.cut.Load() || w.Stats().Released != 10 || w.Stats().Calls != 0 {
			t.Errorf("cut off = %v, stats = %+v", s.cut.Load(), w.Stats())
		}
		wantStates(t, s.fake, map[model.State]int{model.Fresh: 10})
	})
}

func TestLateCheckOutIsGivenBackWhileHandlersFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowClaims{fake: newFake(10), d: 3 * time.Second}
		w := start(t, s, takes(20*time.Second), processor.Options{Concurrency: 5, MaxBatch: 4})
		pass(4 * time.Second) // the first check-out is through, the second under way
		w.stop()
		pass(3 * time.Second)
		if got := w.Stats(); got.Busy != 4 || got.Released != 1 {
			t.Errorf("stats = %+v, want the fifth row given back", got)
		}
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestCheckOutThatHangsIsCutOffAtAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowClaims{fake: newFake(10), d: time.Hour}
		w := start(t, s, takes(0), processor.Options{})
		begun := time.Now()
		w.stop()
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(begun); d > 5*time.Second || !s.cut.Load() {
			t.Errorf("the stop took %v", d)
		}
	})
}

func TestStopInAnOutageWaitsForTheDatabaseForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(4)
		w := start(t, f, takes(10*time.Second), processor.Options{Concurrency: 4})
		f.setFault(gone)
		w.stop()
		pass(30 * time.Second)
		w.running()
		f.setFault(nil)
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
		wantStates(t, f, map[model.State]int{model.Done: 4})
	})
}

func TestStopInALongOutageSaysWhatCouldNotBeStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(4)
		w := start(t, f, takes(10*time.Second), processor.Options{Concurrency: 4})
		f.setFault(gone)
		w.stop()
		begun := time.Now()
		err := w.wait()
		if !errors.Is(err, model.ErrUnavailable) {
			t.Fatalf("Run = %v", err)
		}
		if d := time.Since(begun); d > 41*time.Second {
			t.Errorf("the stop took %v", d)
		}
	})
}

func TestRunWithAnEndedContextTouchesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(10)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("my reason"))
		if err := processor.New(f, takes(0), processor.Options{}).Run(ctx); err != nil {
			t.Fatal(err)
		}
		wantStates(t, f, map[model.State]int{model.Fresh: 10})
	})
}

func TestStuckErrorNamesTheFirstRows(t *testing.T) {
	err := &processor.StuckError{Rows: []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}
	want := "handlers that ignore their cancel were left behind: rows 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 2 more"
	if err.Error() != want {
		t.Errorf("error = %q, want %q", err, want)
	}
}
