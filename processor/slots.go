package processor

import (
	"context"
	"sync/atomic"
	"time"
)

// slots are the goroutines that call the handler, one row at a time each. They
// are no errgroup, because it must be possible to leave one behind.
type slots struct {
	*worker
	alive atomic.Int64
	gone  chan struct{} // closed by the last one
}

func newSlots(w *worker) *slots {
	return &slots{worker: w, gone: make(chan struct{})}
}

func (s *slots) start(stopping, working context.Context) {
	s.alive.Store(int64(s.opts.Concurrency))
	for range s.opts.Concurrency {
		go s.run(stopping, working)
	}
}

// wait returns true as soon as all slots have ended, false if d is over before.
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

// run is one slot. A handler may end the goroutine (runtime.Goexit, which is what
// t.FailNow does); its slot then goes on in another.
func (s *slots) run(stopping, working context.Context) {
	ended := false
	defer func() {
		if !ended {
			go s.run(stopping, working)
			return
		}
		if s.alive.Add(-1) == 0 {
			close(s.gone)
		}
	}()
	// A parent of its own, so that slots don't contend for one when they make
	// the contexts of their rows.
	own, cancel := context.WithCancel(working)
	defer cancel()
	for h := s.next(stopping); h != nil; h = s.next(stopping) {
		if !s.admit(stopping, h) {
			continue
		}
		if s.batches == nil || h.row.Losses > 0 || h.probe {
			s.try(own, h)
			continue
		}
		s.tryAll(own, s.gather(stopping, h))
	}
	ended = true
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
func (s *slots) admit(stopping context.Context, h *held) bool {
	if int(h.row.Losses) > s.opts.MaxAttempts {
		s.failUnstarted(h)
		return false
	}
	if !s.breaker.enter(h) || !s.enter(stopping, h) {
		s.giveBack(h)
		return false
	}
	if !s.solitude(stopping, h) || !s.throttle(stopping) || h.lost.Load() || !s.secure(stopping, h) {
		s.share.Release(h.weight)
		s.giveBack(h)
		return false
	}
	return true
}

// enter takes the row's share of the process: all of it for a row that lost its
// worker before. An ordinary row that can't start because such a one runs, or waits
// to run, is better off with another worker; besides, that one may be waiting for
// it to be gone.
func (s *slots) enter(stopping context.Context, h *held) bool {
	h.weight = 1
	if h.row.Losses > 0 {
		h.weight = int64(s.opts.Concurrency)
	}
	if s.share.TryAcquire(h.weight) {
		return true
	}
	return h.row.Losses > 0 && s.share.Acquire(stopping, h.weight) == nil
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
