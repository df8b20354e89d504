package processor_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windrow-go/windrow/model"
	"github.com/windrow-go/windrow/processor"
)

func TestWorkStopsWhenTheWholeFleetHasSpentEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1000)
		f.cost = 10 // of others
		w := start(t, f, handle(func(ctx context.Context, row model.Dataset) (any, error) {
			_ = work(ctx, 100*time.Millisecond)
			if row.ID%2 == 0 {
				return model.Answer{Cost: 0.5}, errors.New("failed, and not for nothing")
			}
			return model.Answer{Cost: 0.5, Result: row.ID}, nil
		}), processor.Options{Concurrency: 2, MaxCost: 20})
		var reached *processor.CostReached
		if err := w.wait(); !errors.As(err, &reached) {
			t.Fatalf("Run = %v, want a CostReached", err)
		}
		if f.cost < 20 || f.cost > 22 || w.Stats().Cost != f.cost-10 {
			t.Errorf("it cost %v, of which %v here", f.cost, w.Stats().Cost)
		}
		if n := f.heldNow(); n != 0 {
			t.Errorf("%d rows are still held", n)
		}
		if err := processor.New(f, takes(0), processor.Options{MaxCost: 20}).Run(t.Context()); !errors.As(err, &reached) {
			t.Errorf("the next worker: %v", err)
		}
	})
}

func TestCostThatIsNoNumberFailsTheRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(3)
		costs := []float64{-1, math.NaN(), math.Inf(1)}
		drain(t, f, handle(func(_ context.Context, row model.Dataset) (any, error) {
			return model.Answer{Cost: costs[row.ID-1]}, nil
		}), processor.Options{})
		wantStates(t, f, map[model.State]int{model.Failed: 3})
		if f.cost != 0 {
			t.Errorf("it cost %v", f.cost)
		}
	})
}
