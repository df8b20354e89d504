package schedule_test

import (
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/windrow-go/windrow/schedule"
)

// Two daemons and one tick after the other, each with a store of its own, compete
// for 1,000 due times.
func TestEachOfAThousandDueTimesIsRunOnce(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		const times = 1000
		f.fill(times)
		f.exec(`UPDATE {schedules} SET rule = 'every 2h'`) // nothing else comes due meanwhile
		if f.engine == "sqlite" {
			f.exec(`UPDATE {runs} SET due_at = due_at - 90000000000 WHERE state = 'waiting'`)
		} else {
			f.exec(`UPDATE {runs} SET due_at = due_at - interval '25 hours' WHERE state = 'waiting'`)
		}
		f.exec(`DELETE FROM {runs} WHERE state = 'done'`)
		var mu sync.Mutex
		ran := map[int64]int{}
		function := func(_ context.Context, run schedule.Run, _ io.Writer) error {
			mu.Lock()
			defer mu.Unlock()
			ran[run.ID]++
			return nil
		}
		began := time.Now()
		opts := schedule.Options{Concurrency: 4, Functions: map[string]schedule.Function{"f": function}}
		for range 2 {
			serve(t, f.schedulerOn(f.open(), opts))
		}
		var ticks errgroup.Group
		for range 2 {
			store := f.open()
			ticks.Go(func() error {
				for range 20 {
					if _, err := f.schedulerOn(store, opts).Tick(t.Context()); err != nil {
						return err
					}
				}
				return nil
			})
		}
		check(t, ticks.Wait())
		eventually(t, "all have run", func() bool { return f.count(`state = 'done'`) == times })
		t.Logf("%d runs in %s", times, time.Since(began))
		mu.Lock()
		defer mu.Unlock()
		equal(t, "runs", len(ran), times)
		for id, n := range ran {
			if n != 1 {
				t.Errorf("run %d: %d times", id, n)
			}
		}
		equal(t, "successors", f.count(`state = 'waiting'`), times)
		equal(t, "others", f.count(`state NOT IN ('waiting', 'done')`), 0)
	})
}
