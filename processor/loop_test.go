package processor_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windrow-go/windrow/model"
	"github.com/windrow-go/windrow/processor"
)

func TestEveryRowIsProcessedOnceAndItsResultStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1234)
		var mu sync.Mutex
		calls := map[int64]int{}
		w := drain(t, f, handle(func(_ context.Context, row model.Dataset) (any, error) {
			mu.Lock()
			defer mu.Unlock()
			calls[row.ID]++
			return row.ID, nil
		}), processor.Options{Concurrency: 4, Version: "v7"})

		wantStates(t, f, map[model.State]int{model.Done: 1234})
		if len(calls) != 1234 {
			t.Fatalf("%d rows were handled, want 1234", len(calls))
		}
		for id, n := range calls {
			if n != 1 {
				t.Fatalf("row %d was handled %d times", id, n)
			}
		}
		if r := f.row(1000); string(r.Result) != "1000" || *r.Version != "v7" {
			t.Fatalf("row 1000 has result %s of version %s", r.Result, *r.Version)
		}
		s := w.Stats()
		if s.Claimed != 1234 || s.Done != 1234 || s.Calls != 1234 || s.Busy+s.Buffered+s.Finished != 0 {
			t.Fatalf("stats = %+v", s)
		}
	})
}

func TestEmptyTableEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		drain(t, newFake(0), takes(0), processor.Options{})
		if d := time.Since(begun); d != 0 {
			t.Fatalf("it took %v", d)
		}
	})
}

func TestEndComesAtOnceWithTheLastRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		drain(t, newFake(3), takes(10*time.Second), processor.Options{Concurrency: 3})
		if d := time.Since(begun); d > 10*time.Second+50*time.Millisecond {
			t.Fatalf("it took %v, though the rows take 10s", d)
		}
	})
}

func TestUntilEmptyWaitsForRowsOfOthersAndRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		other, err := f.CheckOut(t.Context(), "other", time.Minute, 1)
		if err != nil {
			t.Fatal(err)
		}
		w := start(t, f, takes(0), processor.Options{UntilEmpty: true})
		pass(10 * time.Second)
		w.running()
		if _, err := f.CheckIn(t.Context(), []model.CheckIn{{
			Ticket:  other[0].Ticket(),
			Outcome: model.Outcome{Verdict: model.VerdictRetry, Delay: 30 * time.Second, Error: "later"},
		}}); err != nil {
			t.Fatal(err)
		}
		pass(20 * time.Second)
		w.running()
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
		wantStates(t, f, map[model.State]int{model.Done: 2})
	})
}

func TestUntilEmptyNoticesSoonThatOthersHaveFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1)
		other, _ := f.CheckOut(t.Context(), "other", time.Hour, 1)
		w := start(t, f, takes(0), processor.Options{UntilEmpty: true})
		pass(10 * time.Second)
		_, _ = f.CheckIn(t.Context(), []model.CheckIn{{Ticket: other[0].Ticket(), Outcome: model.Outcome{Verdict: model.VerdictDone}}})
		pass(time.Second)
		select {
		case err := <-w.end:
			if err != nil {
				t.Fatal(err)
			}
		default:
			t.Fatal("still running a second after the last row was done")
		}
	})
}

func TestUntilEmptyDoesNotWaitForRowsDelayedAndNeverTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1)
		f.add(1, func(r *model.Dataset) { r.AvailableAt = time.Now().Add(24 * time.Hour) })
		drain(t, f, takes(0), processor.Options{})
		wantStates(t, f, map[model.State]int{model.Done: 1, model.Waiting: 1})
	})
}

func TestIdleWorkerIsWokenByNewRowsAndDueTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(0)
		w := start(t, f, takes(0), processor.Options{})
		pass(time.Hour)
		f.look(func() {
			looks := 0
			for _, op := range f.log {
				if op == "agenda" {
					looks++
				}
			}
			if looks < 45 || looks > 90 {
				t.Errorf("%d looks at an empty table in an hour, want about one a minute", looks)
			}
			if others := len(f.log) - looks; others > 1 || f.orders > 1 { // of its start
				t.Errorf("besides, it asked %d other things, and %d times for a pause", others, f.orders)
			}
			if len(f.told) > looks+1 {
				t.Errorf("%d reports with %d looks", len(f.told), looks)
			}
		})
		f.add(1)
		synctest.Wait()
		wantStates(t, f, map[model.State]int{model.Done: 1})

		f.add(1, func(r *model.Dataset) { r.AvailableAt = time.Now().Add(7 * time.Second) })
		pass(7*time.Second + time.Millisecond)
		wantStates(t, f, map[model.State]int{model.Done: 2})
		w.stop()
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestOwnRetryIsTakenUpWhenItIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1)
		begun := time.Now()
		drain(t, f, handle(func(_ context.Context, row model.Dataset) (any, error) {
			if row.Attempts < 3 {
				return nil, processor.RetryAfter(1500*time.Millisecond, errors.New("not yet"))
			}
			return nil, nil
		}), processor.Options{})
		if d := time.Since(begun); d < 3*time.Second || d > 3200*time.Millisecond {
			t.Fatalf("two retries after 1.5s each took %v", d)
		}
	})
}

// contested says that a row is available, but somebody else is always quicker.
type contested struct {
	*fake
	times []time.Time
}

func (c *contested) CheckOut(context.Context, string, time.Duration, int) ([]model.Claim, error) {
	c.times = append(c.times, time.Now())
	return nil, nil
}

func TestCheckOutsThatBringNothingAreSpacedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &contested{fake: newFake(1)}
		w := start(t, c, takes(0), processor.Options{})
		pass(10 * time.Second)
		w.stop()
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
		if n := len(c.times); n < 60 || n > 220 {
			t.Fatalf("%d check-outs in 10s, want about one in 100ms", n)
		}
		if first := c.times[1].Sub(c.times[0]); first > 15*time.Millisecond {
			t.Fatalf("first pause %v, want about 10ms", first)
		}
	})
}

func TestSlowRowsAreNotHoarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(100)
		drain(t, f, takes(time.Hour), processor.Options{Concurrency: 7})
		f.look(func() {
			if f.most != 7 {
				t.Errorf("%d rows were held at once, want 7, one a slot", f.most)
			}
		})
	})
}

func TestFastRowsAreFetchedInFullBatchesAfterAFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(20_000)
		drain(t, f, takes(0), processor.Options{Concurrency: 8})
		f.look(func() {
			full := slices.Index(f.got, 500)
			if full < 0 || full > 8 {
				t.Errorf("first full batch is number %d of %v", full, f.got)
			}
			if slices.Max(f.asked) > 500 || f.most > 1000 {
				t.Errorf("asked for %d rows at once and held %d", slices.Max(f.asked), f.most)
			}
			if f.got[0] != 8 {
				t.Errorf("the first check-out brought %d rows, want one a slot", f.got[0])
			}
		})
	})
}

func TestAboutAQuarterOfASecondOfWorkIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2000)
		drain(t, f, takes(10*time.Millisecond), processor.Options{Concurrency: 4})
		f.look(func() {
			if f.most < 60 || f.most > 130 {
				t.Errorf("%d rows of 10ms were held for 4 slots, want about 100", f.most)
			}
		})
	})
}

func TestDataInHandIsBoundedInBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		big := json.RawMessage(`"` + strings.Repeat("x", 5<<20) + `"`)
		f := newFake(100, func(r *model.Dataset) { r.Data = big })
		var ended, most atomic.Int64
		drain(t, f, handle(func(ctx context.Context, _ model.Dataset) (any, error) {
			defer ended.Add(1)
			f.look(func() { most.Store(max(most.Load(), int64(sum(f.got))-ended.Load())) })
			return nil, work(ctx, time.Millisecond)
		}), processor.Options{Concurrency: 4})
		wantStates(t, f, map[model.State]int{model.Done: 100})
		if n := most.Load(); n < 5 || n > 7 {
			t.Errorf("%d unfinished rows of 5 MiB were held at once, want 6", n)
		}
	})
}

func sum(ns []int) (total int) {
	for _, n := range ns {
		total += n
	}
	return total
}

func TestRowsLargerThanTheBoundStillGetThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		huge := json.RawMessage(`"` + strings.Repeat("x", 40<<20) + `"`)
		f := newFake(5, func(r *model.Dataset) { r.Data = huge })
		drain(t, f, takes(time.Millisecond), processor.Options{Concurrency: 1})
		wantStates(t, f, map[model.State]int{model.Done: 5})
	})
}

func TestRowsThatWouldWaitLongAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(3000)
		// Row 2001 and its followers take an hour, without notice.
		w := start(t, f, handle(func(ctx context.Context, row model.Dataset) (any, error) {
			if row.ID > 2000 {
				return nil, work(ctx, time.Hour)
			}
			return nil, nil
		}), processor.Options{Concurrency: 2})
		pass(10 * time.Second)
		if n := w.Stats().Buffered; n < 100 {
			t.Fatalf("%d rows are buffered; the test needs many", n)
		}
		pass(15 * time.Second) // a third of the lease is over
		if s := w.Stats(); s.Buffered != 0 || s.Released < 100 {
			t.Fatalf("stats = %+v, want the buffer given back", s)
		}
		pass(30 * time.Minute)
		if s := w.Stats(); s.Buffered != 0 {
			t.Fatalf("%d rows are hoarded again", s.Buffered)
		}
		wantStates(t, f, map[model.State]int{model.Done: 2000, model.InFlight: 2, model.Fresh: 998})
		w.stop()
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
	})
}
