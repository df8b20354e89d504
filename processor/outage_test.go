package processor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windrow-go/windrow/model"
	"github.com/windrow-go/windrow/processor"
)

// gone is the fault of a server that can't be reached.
func gone(op string, after bool) error {
	if after {
		return nil
	}
	return fmt.Errorf("%s: %w", op, model.ErrUnavailable)
}

func TestAfterAnOutageRenewalComesFirstThenCheckInThenClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(40)
		w := start(t, f, handle(func(ctx context.Context, row model.Dataset) (any, error) {
			if row.ID%2 == 0 {
				return nil, work(ctx, 10*time.Minute)
			}
			return nil, work(ctx, time.Second)
		}), processor.Options{Concurrency: 4, UntilEmpty: true})
		f.setFault(gone)
		pass(5 * time.Minute)
		if s := w.Stats(); s.Finished == 0 || s.Busy == 0 {
			t.Fatalf("stats = %+v; the test needs finished and running rows", s)
		}
		f.look(func() { f.log = nil })
		f.setFault(nil)
		pass(10 * time.Second)
		var log []string
		f.look(func() { log = slices.Clone(f.log) })
		if order := strings.Join(slices.Compact(log), ", "); !strings.HasPrefix(order, "renew, check in, check out") {
			t.Errorf("order = %s", order)
		}
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
		wantStates(t, f, map[model.State]int{model.Done: 40})
		if s := w.Stats(); s.Calls != 40 {
			t.Errorf("stats = %+v, want each row processed once", s)
		}
	})
}

func TestOutageIsLoggedOnceAtItsBeginAndOnceAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(50)
		w := start(t, f, takes(time.Second), processor.Options{Concurrency: 4})
		var tries atomic.Int64
		f.setFault(func(op string, after bool) error {
			tries.Add(1)
			return gone(op, after)
		})
		pass(time.Hour)
		f.setFault(nil)
		pass(time.Minute)
		if b, e := w.logged("the database is out of reach; claiming waits, handlers go on"), w.logged("the database is back"); b != 1 || e != 1 {
			t.Errorf("logged %d begins and %d ends, want one each", b, e)
		}
		if n := tries.Load(); n < 500 || n > 1500 {
			t.Errorf("%d tries in an hour, want one in 5s or so", n)
		}
		wantStates(t, f, map[model.State]int{model.Done: 50})
		w.stop()
		_ = w.wait()
	})
}

func TestCheckInWhoseAnswerWasLostIsCountedAsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(10)
		var cut atomic.Bool
		f.setFault(func(op string, after bool) error {
			if op == "check in" && after && cut.CompareAndSwap(false, true) {
				return model.ErrUnavailable
			}
			return nil
		})
		w := drain(t, f, takes(time.Second), processor.Options{Concurrency: 10})
		if s := w.Stats(); s.Done != 10 || s.Lost != 0 || f.stored != 10 {
			t.Errorf("stats = %+v, %d stored", s, f.stored)
		}
	})
}

func TestRowWhoseLeaseMayBeOverIsNotStartedBeforeItIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2000)
		begun := time.Now()
		var down atomic.Bool
		var early, late, after atomic.Int64
		w := start(t, f, handle(func(ctx context.Context, row model.Dataset) (any, error) {
			switch {
			case row.ID <= 1000:
				return nil, nil
			case row.ID == 1001: // tells the worker that the database is gone
				return nil, work(ctx, time.Second)
			case !down.Load():
				after.Add(1)
			case time.Since(begun) < time.Minute:
				early.Add(1)
			default:
				late.Add(1)
			}
			return nil, work(ctx, 2*time.Minute)
		}), processor.Options{Concurrency: 2})
		down.Store(true)
		f.setFault(gone)
		pass(10 * time.Minute)
		if s := w.Stats(); s.Buffered < 100 || early.Load() == 0 {
			t.Fatalf("stats = %+v; the test needs a buffer", s)
		}
		if n := late.Load(); n != 0 {
			t.Fatalf("%d rows were started whose lease may have been over", n)
		}
		var stolen int64
		for _, r := range f.rows {
			if r.CheckedOutBy != nil && !r.IsProcessed && r.ID > 1100 {
				f.steal(r.ID)
				stolen++
			}
		}
		down.Store(false)
		f.setFault(nil)
		pass(10 * time.Second)
		if s := w.Stats(); s.Lost != stolen || stolen == 0 {
			t.Errorf("stats = %+v, want %d lost", s, stolen)
		}
		if after.Load() == 0 {
			t.Error("nothing was started after the outage")
		}
		w.stop()
		_ = w.wait()
	})
}

func TestHandStaysBoundedWhileCheckInsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(10_000)
		f.setFault(func(op string, after bool) error {
			if op == "check in" {
				return gone(op, after)
			}
			return nil
		})
		w := start(t, f, takes(0), processor.Options{MaxBatch: 50})
		pass(10 * time.Minute)
		if s := w.Stats(); s.Finished+s.Buffered+s.Busy > 100 || s.Done != 0 {
			t.Errorf("stats = %+v, want at most 100 rows in hand", s)
		}
		f.setFault(nil)
		pass(time.Minute)
		wantStates(t, f, map[model.State]int{model.Done: 10_000})
		w.stop()
		_ = w.wait()
	})
}

func TestLargeResultsWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(40)
		f.setFault(func(op string, after bool) error {
			if op == "check in" {
				return gone(op, after)
			}
			return nil
		})
		var calls atomic.Int64
		big := strings.Repeat("x", 10<<20)
		w := start(t, f, handle(func(context.Context, model.Dataset) (any, error) {
			calls.Add(1)
			return big, nil
		}), processor.Options{Concurrency: 2})
		pass(time.Minute)
		// Six are finished, and each slot waits with one more.
		if n := calls.Load(); n > 8 {
			t.Errorf("%d results of 10 MiB were made while none could be stored", n)
		}
		f.setFault(nil)
		pass(2 * time.Minute)
		if s := w.Stats(); s.Done != 40 || s.Finished != 0 {
			t.Errorf("stats = %+v", s)
		}
		w.stop()
		_ = w.wait()
	})
}

// hanging never answers a check-in the first time.
type hanging struct {
	*fake
	hung atomic.Bool
}

func (h *hanging) CheckIn(ctx context.Context, batch []model.CheckIn) (model.Receipt, error) {
	if h.hung.CompareAndSwap(false, true) {
		<-ctx.Done()
		return model.Receipt{}, ctx.Err()
	}
	return h.fake.CheckIn(ctx, batch)
}

func TestCallThatNeverAnswersIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hanging{fake: newFake(1)}
		w := drain(t, h, takes(0), processor.Options{})
		if s := w.Stats(); s.Done != 1 {
			t.Errorf("stats = %+v", s)
		}
	})
}

func TestLastingErrorEndsTheWorkerInGoodOrder(t *testing.T) {
	denied := errors.New("permission denied")
	for _, op := range []string{"check out", "check in", "renew", "agenda"} {
		t.Run(op, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(6)
				f.setFault(func(o string, after bool) error {
					if o == op && !after {
						return denied
					}
					return nil
				})
				w := start(t, f, takes(30*time.Second), processor.Options{Concurrency: 2, Grace: time.Minute})
				err := w.wait()
				if !errors.Is(err, denied) {
					t.Fatalf("Run = %v", err)
				}
				if n := f.states()[model.InFlight]; n != 0 {
					t.Errorf("%d rows are still held", n)
				}
			})
		})
	}
}

func TestIdleWorkerOutlivesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(0)
		w := start(t, f, takes(0), processor.Options{})
		f.setFault(gone)
		pass(10 * time.Minute)
		f.setFault(nil)
		f.add(3)
		pass(10 * time.Second)
		wantStates(t, f, map[model.State]int{model.Done: 3})
		w.stop()
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestStopEndsTheWaitForALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(600)
		w := start(t, f, handle(func(ctx context.Context, row model.Dataset) (any, error) {
			if row.ID <= 500 {
				return nil, nil
			}
			return nil, work(ctx, time.Second)
		}), processor.Options{Concurrency: 1})
		f.setFault(gone)
		pass(5 * time.Minute)
		s := w.Stats()
		if s.Busy != 0 || s.Buffered == 0 {
			t.Fatalf("stats = %+v; the test needs a slot that waits for a lease", s)
		}
		w.stop()
		pass(time.Second)
		f.setFault(nil)
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
		if w.Stats().Calls != s.Calls {
			t.Error("a row was started after the stop")
		}
		if n := f.states()[model.InFlight] + f.states()[model.Expired]; n != 0 {
			t.Errorf("%d rows are still held", n)
		}
	})
}

func TestWhatPiledUpInAnOutageIsStoredTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(100)
		w := start(t, f, takes(10*time.Second), processor.Options{Concurrency: 50})
		f.setFault(gone)
		pass(time.Minute)
		f.look(func() { f.log = nil })
		f.setFault(nil)
		pass(9 * time.Second)
		// One outcome was on its way when the outage was noticed.
		if n := count(f, "check in"); n < 1 || n > 2 || w.Stats().Done != 50 {
			t.Errorf("%d check-ins stored %d rows, want 50 by one or two", n, w.Stats().Done)
		}
		w.stop()
		_ = w.wait()
	})
}
