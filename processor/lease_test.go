package processor_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windrow-go/windrow/model"
	"github.com/windrow-go/windrow/processor"
)

func TestLongRowIsProcessedOnceUnderAShortLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(3)
		w := start(t, f, takes(10*time.Second), processor.Options{Concurrency: 3, Lease: 2 * time.Second, UntilEmpty: true})
		other := start(t, f, takes(0), processor.Options{UntilEmpty: true})
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
		if err := other.wait(); err != nil {
			t.Fatal(err)
		}
		if s, o := w.Stats(), other.Stats(); s.Done != 3 || o.Claimed != 0 {
			t.Fatalf("stats = %+v, of the other %+v", s, o)
		}
	})
}

func TestLeasesAreRenewedInBatchesAndNotTooEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(8)
		w := start(t, f, takes(time.Hour), processor.Options{Concurrency: 8})
		pass(19 * time.Second)
		if n := count(f, "renew"); n != 0 {
			t.Fatalf("%d renewals before a third of the lease was gone", n)
		}
		pass(3 * time.Second)
		if n := count(f, "renew"); n != 1 {
			t.Fatalf("%d renewals for 8 rows, want 1", n)
		}
		w.stop()
		_ = w.wait()
	})
}

// count counts the statements of a kind that were carried out.
func count(f *fake, op string) (n int) {
	f.look(func() {
		for _, o := range f.log {
			if o == op {
				n++
			}
		}
	})
	return n
}

func TestLostLeaseCancelsTheHandlerAndDropsItsResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		var cause atomic.Value
		w := start(t, f, handle(func(ctx context.Context, row model.Dataset) (any, error) {
			if row.ID == 2 {
				return nil, work(ctx, time.Hour)
			}
			<-ctx.Done()
			cause.Store(context.Cause(ctx))
			return "late", nil
		}), processor.Options{Concurrency: 2})
		f.steal(1)
		pass(25 * time.Second)
		if err, _ := cause.Load().(error); !errors.Is(err, processor.ErrLeaseLost) {
			t.Fatalf("cause = %v", err)
		}
		s := w.Stats()
		if s.Lost != 1 || s.Done != 0 || s.Busy != 1 || s.FailedCalls != 0 {
			t.Fatalf("stats = %+v", s)
		}
		if n := count(f, "check in"); n != 0 {
			t.Errorf("%d check-ins of a row known to be lost", n)
		}
		if w.logged("row lost to a newer claim") != 1 {
			t.Error("the loss was not logged once")
		}
		w.stop()
		_ = w.wait()
	})
}

func TestClaimLostUnnoticedIsCountedAtCheckIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1)
		w := start(t, f, takes(time.Second), processor.Options{})
		f.steal(1)
		pass(2 * time.Second)
		if s := w.Stats(); s.Lost != 1 || s.Done != 0 || s.Finished != 0 {
			t.Fatalf("stats = %+v", s)
		}
		w.stop()
		_ = w.wait()
	})
}

func TestHandlerIsNotCancelledWhileTheDatabaseCannotBeAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1)
		w := start(t, f, takes(10*time.Minute), processor.Options{UntilEmpty: true})
		f.setFault(gone)
		pass(9 * time.Minute) // many leases
		if s := w.Stats(); s.Busy != 1 || s.Lost != 0 {
			t.Fatalf("stats = %+v", s)
		}
		f.setFault(nil)
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
		if s := w.Stats(); s.Done != 1 || s.Calls != 1 {
			t.Fatalf("stats = %+v", s)
		}
	})
}

func TestStuckHandlerIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(3)
		let := make(chan struct{})
		w := start(t, f, handle(func(ctx context.Context, row model.Dataset) (any, error) {
			if row.ID == 1 && row.Checkouts == 1 {
				<-let // deaf
			}
			return nil, nil
		}), processor.Options{Concurrency: 2, Timeout: 10 * time.Second})
		pass(20 * time.Second)
		// Its row has been tried again, by the slot that has taken the place of its own.
		if s := w.Stats(); s.Stuck != 1 || s.Busy != 1 || s.Buffered != 0 || s.Done != 3 || s.Retried != 1 || s.Calls != 4 {
			t.Fatalf("stats = %+v", s)
		}
		if got := text(f.row(1).LastError); got != "the handler did not return when its time was up" {
			t.Errorf("error = %q", got)
		}
		f.add(3)
		pass(2 * time.Minute)
		close(let)
		synctest.Wait()
		w.stop()
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
		if s := w.Stats(); s.Stuck != 0 || s.Busy != 0 || s.Lost != 0 || s.Done != 6 {
			t.Fatalf("stats = %+v", s)
		}
	})
}

func TestLateHandlerThatReturnsInTimeIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1)
		w := drain(t, f, handle(func(ctx context.Context, row model.Dataset) (any, error) {
			time.Sleep(14 * time.Second)
			return "at last", nil
		}), processor.Options{Concurrency: 2, Timeout: 10 * time.Second})
		if s := w.Stats(); s.Done != 1 || s.Calls != 1 || s.Stuck != 0 {
			t.Fatalf("stats = %+v", s)
		}
	})
}

func TestWorkerEndsWhenEverySlotAndItsReplacementIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(5)
		let := make(chan struct{})
		defer close(let)
		w := start(t, f, handle(func(context.Context, model.Dataset) (any, error) {
			<-let
			return nil, nil
		}), processor.Options{Concurrency: 2, Timeout: time.Second})
		begun := time.Now()
		err := w.wait()
		stuck, ok := errors.AsType[*processor.StuckError](err)
		if !ok || !slices.Equal(stuck.Rows, []int64{1, 2, 3, 4}) {
			t.Fatalf("Run = %v, want rows 1 to 4 named", err)
		}
		if d := time.Since(begun); d > 16*time.Second {
			t.Errorf("it took %v", d)
		}
		if n := f.heldNow(); n != 0 {
			t.Errorf("%d rows are still held", n)
		}
	})
}

func TestLeasesAreAtRiskWhenRenewalsAreOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(3)
		w := start(t, f, handle(func(ctx context.Context, row model.Dataset) (any, error) {
			err := work(ctx, 10*time.Minute)
			if err != nil && row.ID == 1 {
				time.Sleep(4 * time.Second) // slow to hear that its claim is lost
			}
			return nil, err
		}), processor.Options{Concurrency: 3})
		wantAtRisk := func(n int) {
			t.Helper()
			if s := w.Stats(); s.AtRisk != n {
				t.Errorf("stats = %+v, want %d at risk", s, n)
			}
		}
		pass(2*time.Minute + 10*time.Second) // renewed every 20 s, the last time 10 s ago
		wantAtRisk(0)
		f.setFault(gone)
		pass(20 * time.Second)
		wantAtRisk(0)
		pass(15 * time.Second)
		wantAtRisk(3)
		f.steal(1)
		f.setFault(nil)
		for w.Stats().Lost == 0 {
			pass(100 * time.Millisecond)
		}
		wantAtRisk(0) // two are renewed, and nothing can be done for the lost one
		w.stop()
		_ = w.wait()
		wantAtRisk(0)
	})
}
