package processor

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// slots are the goroutines that call the handler, one row or batch at a time each.
// They are no errgroup, because it must be possible to leave one behind.
type slots struct {
	*worker
	stopping, working context.Context

	mu       sync.Mutex
	alive    int           // not counting those whose handlers are stuck
	replaced int           // of those: whose place another took
	gone     chan struct{} // closed when none is alive
}

func newSlots(w *worker) *slots {
	return &slots{worker: w, alive: w.opts.Concurrency, gone: make(chan struct{})}
}

func (s *slots) start(stopping, working context.Context) {
	s.stopping, s.working = stopping, working
	for range s.opts.Concurrency {
		go s.run(&slot{})
	}
}

// wait returns true as soon as all slots have ended, but for those left behind, and
// false if d is over before.
func (s *slots) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.gone:
		return true
	case <-timer.C:
		return false
	}
}

// abandon leaves a slot behind whose handler is stuck: another takes its place, up to
// as many as there were at first. Without any that is not stuck the worker stops. It
// is called by whoever finds out first, and does nothing the second time.
func (s *slots) abandon(me *slot) {
	if !me.left.CompareAndSwap(false, true) {
		return
	}
	s.share.Release(me.weight)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.replaced < s.opts.Concurrency && s.stopping.Err() == nil {
		s.replaced++
		go s.run(&slot{})
		return
	}
	s.end()
	if s.alive == 0 {
		s.halt(errAllStuck)
	}
}

// end counts a slot out; s.mu is held.
func (s *slots) end() {
	s.alive--
	if s.alive == 0 {
		close(s.gone)
	}
}

// comeBack is told that a slot's handler, which was stuck, has returned. If its
// place had been taken it ends.
func (s *slots) comeBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.replaced > 0:
		s.replaced--
	case s.alive > 0:
		s.alive++
		go s.run(&slot{})
	}
}

// slot is one goroutine of the slots.
type slot struct {
	own    context.Context // parent of its rows' contexts
	weight int64           // share of the process that it takes up while it works
	left   atomic.Bool     // its handler was found stuck: it is not counted any more
}

// run is one slot. A handler may end the goroutine (runtime.Goexit, which is what
// t.FailNow does); its slot then goes on in another.
func (s *slots) run(me *slot) {
	ended := false
	defer func() {
		switch {
		case me.left.Load():
			s.comeBack()
		case !ended:
			go s.run(&slot{})
		default:
			s.mu.Lock()
			defer s.mu.Unlock()
			s.end()
		}
	}()
	// A parent of its own, so that slots don't contend for one when they make
	// the contexts of their rows.
	own, cancel := context.WithCancel(s.working)
	defer cancel()
	me.own = own
	for !me.left.Load() {
		h := s.next(s.stopping)
		if h == nil {
			break
		}
		if s.admit(s.stopping, me, h) {
			s.work(me, h)
		}
	}
	ended = true
}

// work calls the handler for a row that has been admitted, and for others if it
// takes batches.
func (s *slots) work(me *slot, h *held) {
	defer func() {
		if !me.left.Load() {
			s.share.Release(me.weight)
		}
	}()
	if s.batches == nil || h.row.Losses > 0 || h.probe {
		s.try(me, h)
		return
	}
	s.tryAll(me, s.gather(s.stopping, h))
}

// next takes a row out of the buffer; nil means stop.
func (s *slots) next(stopping context.Context) *held {
	select {
	case <-stopping.Done():
		return nil
	case h := <-s.buffer:
		if stopping.Err() != nil { // both were ready
			s.giveBack(h)
			return nil
		}
		return h
	}
}

// admit waits until the row may be started. If it may not, it is settled.
func (s *slots) admit(stopping context.Context, me *slot, h *held) bool {
	if int(h.row.Losses) > s.opts.MaxAttempts {
		s.failUnstarted(h)
		return false
	}
	if !s.breaker.enter(h) || !s.enter(stopping, me, h) {
		s.giveBack(h)
		return false
	}
	if !s.solitude(stopping, h) || !s.throttle(stopping) || h.lost.Load() || !s.secure(stopping, h) {
		s.share.Release(me.weight)
		s.giveBack(h)
		return false
	}
	return true
}

// enter takes the slot's share of the process: all of it for a row that lost its
// worker before. An ordinary row that can't start because such a one runs, or waits
// to run, is better off with another worker; besides, that one may be waiting for
// it to be gone.
func (s *slots) enter(stopping context.Context, me *slot, h *held) bool {
	me.weight = 1
	if h.row.Losses > 0 {
		me.weight = int64(s.opts.Concurrency)
	}
	if s.share.TryAcquire(me.weight) {
		return true
	}
	return h.row.Losses > 0 && s.share.Acquire(stopping, me.weight) == nil
}

// solitude waits until a row that must run alone is the only one in hand: if the
// worker is lost while it runs, no other row is charged. It returns false if the
// worker stops.
func (s *slots) solitude(stopping context.Context, h *held) bool {
	for h.row.Losses > 0 && !s.hand.solitary() {
		select {
		case <-s.hand.fewer:
		case <-stopping.Done():
			return false
		}
	}
	return true
}

// throttle waits until the allowed rate has room for a row. It returns false if the
// worker stops.
func (s *slots) throttle(stopping context.Context) bool {
	return s.limiter == nil || s.limiter.Wait(stopping) == nil
}

// secure makes sure that the row's lease lasts, which it may not after an outage
// or when the whole process was suspended: then it waits for the renewer. It
// returns false if the row is lost or the worker stops.
func (s *slots) secure(stopping context.Context, h *held) bool {
	for s.now() >= h.leaseEnd() {
		renewal := s.hand.nextRenewal()
		poke(s.check)
		select {
		case <-renewal:
		case <-stopping.Done():
			return false
		}
		if h.lost.Load() {
			return false
		}
	}
	return true
}
