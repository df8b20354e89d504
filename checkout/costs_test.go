package checkout_test

import (
	"fmt"
	"sync"
	"testing"
)

func TestCostsOfAllWorkersAreAddedUp(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		total, err := f.Spend(t.Context(), "a", 0)
		check(t, err)
		equal(t, "cost of nothing", total, 0)
		var workers sync.WaitGroup
		for i := range 4 {
			workers.Go(func() {
				for range 10 {
					_, err := f.Spend(t.Context(), fmt.Sprintf("worker %d", i), 0.25)
					check(t, err)
				}
			})
		}
		workers.Wait()
		total, err = f.Spend(t.Context(), "a", 1.5)
		check(t, err)
		equal(t, "sum", total, 11.5)
	})
}
