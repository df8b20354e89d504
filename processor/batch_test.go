package processor_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windrow-go/windrow/model"
	"github.com/windrow-go/windrow/processor"
)

type batches = processor.BatchHandlerFunc

// answers answers every row with its id.
func answers(rows []model.Dataset) []model.Reply {
	replies := make([]model.Reply, len(rows))
	for i, row := range rows {
		replies[i].Result = row.ID
	}
	return replies
}

func TestBatchesAreFilledAndEveryRowAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1000)
		var calls atomic.Int64
		drain(t, f, batches(func(ctx context.Context, rows []model.Dataset) ([]model.Reply, error) {
			calls.Add(1)
			return answers(rows), work(ctx, time.Second)
		}), processor.Options{Concurrency: 2, BatchRows: 100})
		wantStates(t, f, map[model.State]int{model.Done: 1000})
		if n := calls.Load(); n > 12 {
			t.Errorf("%d calls for 1,000 rows in batches of up to 100", n)
		}
		if r := f.row(321); string(r.Result) != "321" {
			t.Errorf("row 321 has result %s", r.Result)
		}
	})
}

func TestSmallBatchIsNotWaitedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		drain(t, newFake(3), batches(func(_ context.Context, rows []model.Dataset) ([]model.Reply, error) {
			return answers(rows), nil
		}), processor.Options{Concurrency: 1, BatchRows: 100, BatchWait: 200 * time.Millisecond})
		if took := time.Since(begun); took > time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A batch with a guilty row fails as a whole, in every way that it can.
func TestOnlyTheGuiltyRowsOfABatchAreCharged(t *testing.T) {
	guilty := []int64{3, 57, 58}
	ways := map[string]func(rows []model.Dataset) ([]model.Reply, error){
		"error": func([]model.Dataset) ([]model.Reply, error) { return nil, errors.New("bad request") },
		"permanent": func([]model.Dataset) ([]model.Reply, error) {
			return nil, processor.Permanent(errors.New("bad request"))
		},
		"panic":  func([]model.Dataset) ([]model.Reply, error) { panic("oh") },
		"goexit": func([]model.Dataset) ([]model.Reply, error) { runtime.Goexit(); return nil, nil },
		"too few answers": func(rows []model.Dataset) ([]model.Reply, error) {
			return answers(rows)[1:], nil
		},
	}
	for name, fail := range ways {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(100)
				w := drain(t, f, batches(func(ctx context.Context, rows []model.Dataset) ([]model.Reply, error) {
					_ = work(ctx, time.Millisecond)
					if slices.ContainsFunc(rows, func(r model.Dataset) bool { return slices.Contains(guilty, r.ID) }) {
						return fail(rows)
					}
					return answers(rows), nil
				}), processor.Options{Concurrency: 2, BatchRows: 20, MaxAttempts: 2})
				wantStates(t, f, map[model.State]int{model.Done: 97, model.Failed: 3})
				for _, r := range f.rows {
					if want := !slices.Contains(guilty, r.ID); want && (r.Attempts != 1 || r.LastError != nil) {
						t.Errorf("row %d had %d attempts, %v", r.ID, r.Attempts, r.LastError)
					}
				}
				if s := w.Stats(); s.Busy != 0 || s.Stuck != 0 || s.Buffered != 0 {
					t.Errorf("left over: %+v", s)
				}
			})
		})
	}
}

func TestBatchThatIsRefusedIsNotTakenApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(50)
		calls := 0
		begun := time.Now()
		drain(t, f, batches(func(_ context.Context, rows []model.Dataset) ([]model.Reply, error) {
			calls++
			if time.Since(begun) < 30*time.Second {
				return nil, processor.Unavailable(errRefused)
			}
			return answers(rows), nil
		}), processor.Options{Concurrency: 1, BatchRows: 50, MaxAttempts: 1})
		wantStates(t, f, map[model.State]int{model.Done: 50})
		if calls > 20 {
			t.Errorf("%d calls", calls)
		}
	})
}

func TestRowThatMustRunAloneIsNeverInABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(40)
		f.rows[11].Losses = 1
		var mu sync.Mutex
		var size int
		drain(t, f, batches(func(ctx context.Context, rows []model.Dataset) ([]model.Reply, error) {
			mu.Lock()
			defer mu.Unlock()
			for _, row := range rows {
				if row.ID == 12 {
					size = len(rows)
				}
			}
			return answers(rows), nil
		}), processor.Options{Concurrency: 3, BatchRows: 10})
		wantStates(t, f, map[model.State]int{model.Done: 40})
		if size != 1 {
			t.Errorf("it was in a batch of %d", size)
		}
	})
}

func TestLostRowOfABatchIsDroppedAndTheOthersStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(10)
		drain(t, f, batches(func(ctx context.Context, rows []model.Dataset) ([]model.Reply, error) {
			f.steal(4)
			err := work(ctx, time.Minute) // it lasts over several renewals
			f.look(func() { f.rows[3].IsProcessed = true })
			return answers(rows), err
		}), processor.Options{Concurrency: 1, BatchRows: 10, Lease: 10 * time.Second})
		if r := f.row(4); r.Result != nil {
			t.Errorf("row 4 has result %s", r.Result)
		}
		wantStates(t, f, map[model.State]int{model.Done: 10})
	})
}

func TestBatchOptionsAreChecked(t *testing.T) {
	err := processor.New(newFake(1), takes(0), processor.Options{BatchRows: 2}).Run(t.Context())
	if err == nil || err.Error() != "processor: options: rows of a batch 2: the handler takes one row at a time" {
		t.Errorf("got %v", err)
	}
	_, err = batches(func(context.Context, []model.Dataset) ([]model.Reply, error) { return nil, nil }).Handle(t.Context(), model.Dataset{})
	if err == nil || err.Error() != fmt.Sprintf("the handler was given %d rows and answered %d", 1, 0) {
		t.Errorf("got %v", err)
	}
}

// One answer to many rows is one refusal.
func TestOneRefusedBatchDoesNotOpenTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(100)
		var calls atomic.Int64
		w := drain(t, f, batches(func(_ context.Context, rows []model.Dataset) ([]model.Reply, error) {
			if calls.Add(1) == 2 {
				return nil, processor.Unavailable(errRefused)
			}
			return answers(rows), nil
		}), processor.Options{Concurrency: 4, BatchRows: 10, MaxAttempts: 1})
		if n := w.logged("slowing down: the handler can't serve"); n != 0 {
			t.Errorf("it slowed down %d times", n)
		}
		wantStates(t, f, map[model.State]int{model.Done: 100})
	})
}

// The handler hangs in the first half of a batch that was taken apart.
func TestHandlerStuckInAHalfIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(40)
		let := make(chan struct{})
		w := start(t, f, batches(func(_ context.Context, rows []model.Dataset) ([]model.Reply, error) {
			switch {
			case len(rows) == 10 && rows[0].ID == 1 && rows[0].Checkouts == 1:
				return nil, errors.New("as a whole")
			case len(rows) == 5 && rows[0].ID == 1 && rows[0].Checkouts == 1:
				<-let // deaf
			}
			return answers(rows), nil
		}), processor.Options{Concurrency: 1, BatchRows: 10, Timeout: time.Second})
		pass(time.Minute)
		if s := w.Stats(); s.Done < 35 || s.Stuck != 5 {
			t.Errorf("stats = %+v, want the others done while the handler is stuck", s)
		}
		close(let)
		pass(time.Minute)
		wantStates(t, f, map[model.State]int{model.Done: 40})
		w.stop()
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
	})
}
