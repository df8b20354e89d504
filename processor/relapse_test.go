package processor_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windrow-go/windrow/processor"
)

// A server that answers, but has no room for a check-out, comes back from each
// outage just to cause the next.
func TestAServerThatRefusesEveryCheckOutIsAskedLessAndLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(50)
		var tries atomic.Int64
		f.setFault(func(op string, after bool) error {
			if op != "check out" || after {
				return nil
			}
			tries.Add(1)
			return gone(op, after)
		})
		w := start(t, f, takes(time.Second), processor.Options{Concurrency: 4})
		pass(time.Hour)
		if n := tries.Load(); n < 500 || n > 1500 {
			t.Errorf("%d check-outs in an hour, want one in 5s or so", n)
		}
		f.setFault(nil)
		pass(time.Minute)
		if s := w.Stats(); s.Done != 50 {
			t.Errorf("stats = %+v, want all done", s)
		}

		// It has been well for a while: the next outage is short again.
		f.setFault(gone)
		f.add(10)
		pass(time.Second)
		f.setFault(nil)
		pass(3 * time.Second)
		if s := w.Stats(); s.Done == 50 {
			t.Errorf("stats = %+v: nothing was done soon after a short outage", s)
		}
		w.stop()
		_ = w.wait()
	})
}
