package processor_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windrow-go/windrow/model"
	"github.com/windrow-go/windrow/processor"
)

// Several workers, a database that comes and goes, answers that get lost, leases
// that are stolen, handlers that do everything a handler can do, and workers that
// are stopped and started: in the end each row must be processed, by exactly one
// accepted check-in, and nobody may hold anything.
func TestWhateverHappensEachRowIsStoredOnce(t *testing.T) {
	for i := range 8 {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("%d seed %d", i, seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { chaos(t, seed) })
		})
	}
}

// dice are shared by everything that happens at random.
type dice struct {
	mu sync.Mutex
	*rand.Rand
}

func (d *dice) n(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.IntN(n)
}

func chaos(t *testing.T, seed uint64) {
	const rows = 2000
	d := &dice{Rand: rand.New(rand.NewPCG(seed, 1))}
	f := newFake(rows)
	f.setFault(func(op string, after bool) error {
		if d.n(20) == 0 {
			return fmt.Errorf("%s: %w", op, model.ErrUnavailable)
		}
		return nil
	})
	for range 10 {
		opts := processor.Options{
			Concurrency: 1 + d.n(8), MaxBatch: 1 + d.n(200), MaxAttempts: 1000,
			Lease: 2 * time.Second, Timeout: time.Minute, Grace: time.Second,
		}
		a, b := start(t, f, anything(d), opts), start(t, f, anything(d), opts)
		pass(time.Duration(d.n(5000)) * time.Millisecond)
		f.expire(d, 50)
		pass(time.Duration(d.n(5000)) * time.Millisecond)
		a.stop()
		b.stop()
		for _, w := range []*worker{a, b} {
			if err := w.wait(); err != nil {
				t.Fatal(err)
			}
		}
	}
	f.setFault(nil)
	drain(t, f, takes(0), processor.Options{MaxAttempts: 1000})

	states := f.states()
	if states[model.Done]+states[model.Failed] != rows || f.stored < rows {
		t.Errorf("states = %v, %d check-ins accepted", states, f.stored)
	}
	for id := int64(1); id <= rows; id++ {
		if r := f.row(id); r.Attempts < 0 || r.Attempts > r.Checkouts || r.Losses > r.Attempts {
			t.Errorf("row %d: %d checkouts, %d attempts, %d losses", id, r.Checkouts, r.Attempts, r.Losses)
		}
	}
}

// expire makes the leases of some held rows run out, as if their workers had been
// suspended for a while.
func (f *fake) expire(d *dice, n int) {
	f.look(func() {
		for _, r := range f.rows {
			if r.CheckedOutBy != nil && !r.IsProcessed && d.n(2) == 0 && n > 0 {
				r.AvailableAt = time.Now()
				n--
			}
		}
	})
}

// anything does what handlers do.
func anything(d *dice) handle {
	return func(ctx context.Context, row model.Dataset) (any, error) {
		switch d.n(40) {
		case 0:
			panic("ouch")
		case 1:
			runtime.Goexit()
		case 2:
			return nil, errors.New("no luck")
		case 3:
			return nil, processor.Permanent(errors.New("hopeless"))
		case 4:
			return nil, processor.RetryAfter(time.Duration(d.n(3000))*time.Millisecond, errors.New("later"))
		case 5:
			return make(chan int), nil
		case 6:
			return nil, work(ctx, time.Duration(d.n(10))*time.Second)
		}
		return row.ID, work(ctx, time.Duration(d.n(20))*time.Millisecond)
	}
}
