package processor_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windrow-go/windrow/model"
	"github.com/windrow-go/windrow/processor"
)

func TestAStuckRowThatRanAloneDoesNotStopItsWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(20, func(r *model.Dataset) {
			if r.ID == 1 {
				r.Losses = 1
			}
		})
		let := make(chan struct{})
		w := start(t, f, handle(func(_ context.Context, row model.Dataset) (any, error) {
			if row.ID == 1 && row.Checkouts == 1 {
				<-let // deaf
			}
			return nil, nil
		}), processor.Options{Concurrency: 2, Timeout: time.Second})
		pass(30 * time.Second)
		if s := w.Stats(); s.Done != 20 || s.Stuck != 1 {
			t.Errorf("stats = %+v, want all done, the stuck row at its second try", s)
		}
		close(let)
		synctest.Wait()
		w.stop()
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
	})
}
