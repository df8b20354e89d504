package processor_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windrow-go/windrow/model"
	"github.com/windrow-go/windrow/processor"
)

func TestAPausedWorkerFinishesWhatItHoldsAndChecksNothingOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1000)
		work := handle(func(context.Context, model.Dataset) (any, error) {
			time.Sleep(10 * time.Millisecond)
			return nil, nil
		})
		w := start(t, f, work, processor.Options{Concurrency: 1, UntilEmpty: true})
		time.Sleep(time.Second)
		f.look(func() { f.paused = true })
		time.Sleep(2 * time.Second)
		before := f.states()
		time.Sleep(time.Minute)
		after := f.states()
		if before[model.Done] == 0 || before[model.Fresh] == 0 || before[model.InFlight] != 0 {
			t.Fatalf("two seconds after the pause: %v", before)
		}
		if after[model.Done] != before[model.Done] {
			t.Fatalf("while paused, %d rows became %d", before[model.Done], after[model.Done])
		}
		f.look(func() {
			if f.orders > 90 {
				t.Errorf("asked %d times", f.orders)
			}
			f.paused = false
		})
		time.Sleep(2 * time.Second)
		if f.states()[model.Done] == after[model.Done] {
			t.Fatal("two seconds after the end of the pause nothing has been done")
		}
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAWorkerTellsOfItselfWhileItWorksAndWhenItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(600)
		work := handle(func(context.Context, model.Dataset) (any, error) {
			time.Sleep(100 * time.Millisecond)
			return nil, nil
		})
		w := start(t, f, work, processor.Options{Concurrency: 1, UntilEmpty: true, Holder: "w", Version: "v1", Program: "1.2"})
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
		f.look(func() {
			if n := len(f.told); n < 13 || n > 15 {
				t.Fatalf("%d reports in a minute", n)
			}
			first, middle, last := f.told[0], f.told[8], f.told[len(f.told)-1]
			if first.Holder != "w" || first.Version != "v1" || first.Program != "1.2" || first.PID == 0 || first.Host == "" || first.Slots != 1 || first.Lease != 60 {
				t.Errorf("first: %+v", first)
			}
			if middle.Done < 380 || middle.Done > 400 || middle.Rate < 9.5 || middle.Rate > 10.5 || middle.InFlight == 0 {
				t.Errorf("after 40 s: %+v", middle)
			}
			if last.Done != 600 || last.InFlight != 0 || f.next[len(f.next)-1] >= 0 {
				t.Errorf("last: %+v, next %v", last, f.next[len(f.next)-1])
			}
		})
	})
}

func TestAnIdleWorkerReportsWithItsLookForWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(0)
		w := start(t, f, nothing, processor.Options{})
		time.Sleep(10 * time.Minute)
		f.look(func() {
			if n := len(f.told); n < 8 || n > 16 {
				t.Errorf("%d reports in ten idle minutes", n)
			}
			for i, next := range f.next[1:] { // the first may be that of its start
				if next < 44*time.Second {
					t.Errorf("report %d promises another in %v", i+1, next)
				}
			}
		})
		w.stop()
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
	})
}

// On SQLite a report is good for longer, up to a moment at which all report.
func TestAnIdleWorkerLooksOftenerThanItReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(0)
		f.covers = 5 * time.Minute
		looks := 0
		f.fault = func(op string, after bool) error {
			if op == "agenda" && !after {
				looks++
			}
			return nil
		}
		w := start(t, f, nothing, processor.Options{})
		time.Sleep(30*time.Minute + time.Second)
		f.look(func() {
			if n := len(f.told); n < 7 || n > 8 { // the first may be that of its start
				t.Errorf("%d reports in 30 idle minutes", n)
			}
			if looks < 24 || looks > 45 {
				t.Errorf("%d looks in 30 idle minutes", looks)
			}
		})
		w.stop()
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAWorkerThatMayNotReportWorks(t *testing.T) {
	f := newFake(10)
	f.reportError = errors.New("permission denied")
	if err := processor.New(f, nothing, processor.Options{UntilEmpty: true}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := f.states()[model.Done]; n != 10 {
		t.Fatalf("%d done", n)
	}
}

// nothing is a handler that does nothing.
var nothing = handle(func(context.Context, model.Dataset) (any, error) { return nil, nil })

func TestAWorkerThatMayNotReportLooksNevertheless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(0)
		f.reportError = errors.New("permission denied")
		w := start(t, f, nothing, processor.Options{})
		pass(10 * time.Minute)
		f.add(1)
		synctest.Wait()
		wantStates(t, f, map[model.State]int{model.Done: 1})
		if n := w.logged("the worker can't be listed among the workers; it goes on without"); n != 1 {
			t.Errorf("said %d times that it can't be listed", n)
		}
		w.stop()
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
	})
}
