package processor

import (
	"math"
	"sync/atomic"
	"time"
)

// Stats is a snapshot of what a [Processor] has done and is doing. The counts
// only grow; an outcome is counted when the database has stored it.
type Stats struct {
	Claimed  int64 // rows checked out
	Done     int64 // checked in with a result
	Failed   int64 // checked in as failed for good
	Retried  int64 // given back for another try
	Released int64 // given back with the attempt refunded
	Lost     int64 // overtaken by a newer claim, results dropped

	Calls       int64         // handler calls that have ended
	FailedCalls int64         // of these: an error, a panic, or a result that can't be stored
	HandlerTime time.Duration // spent in ended handler calls
	Cost        float64       // of ended handler calls, by their answers

	Busy     int // slots that are in a handler
	Stuck    int // of these: handlers that ignore their cancel
	Buffered int // rows held that have not been started
	Finished int // rows held whose outcome is not stored yet
	AtRisk   int // rows held of whose lease less than a third is left

	Trouble string // why the worker is slowed down; empty: it isn't
}

// counts is the growing part of Stats, live.
type counts struct {
	claimed, done, failed, retried, released, lost atomic.Int64
	calls, failedCalls, handlerTime                atomic.Int64
	cost                                           atomic.Uint64 // bits of a float64
}

func (c *counts) addCost(cost float64) {
	for {
		old := c.cost.Load()
		if c.cost.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+cost)) {
			return
		}
	}
}

// snapshot reads the counts, and the gauges of what is in hand, if anything is.
func (c *counts) snapshot(d *hand) Stats {
	s := Stats{
		Claimed:     c.claimed.Load(),
		Done:        c.done.Load(),
		Failed:      c.failed.Load(),
		Retried:     c.retried.Load(),
		Released:    c.released.Load(),
		Lost:        c.lost.Load(),
		Calls:       c.calls.Load(),
		FailedCalls: c.failedCalls.Load(),
		HandlerTime: time.Duration(c.handlerTime.Load()),
		Cost:        math.Float64frombits(c.cost.Load()),
	}
	if d != nil {
		busy, unfinished := d.busy.Load(), d.unfinished.Load()
		s.Busy, s.Stuck = int(busy), int(d.stuck.Load())
		s.Buffered = int(max(unfinished-(busy-int64(s.Stuck)), 0))
		s.Finished = int(max(d.count.Load()-unfinished, 0))
	}
	return s
}
