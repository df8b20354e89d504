package processor

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/windrow-go/windrow/model"
)

// held is one claim in hand, from its check-out until its outcome is stored.
//
//	waiting ──▶ running ─┬▶ returned ─┬▶ finished ──▶ (checked in)
//	   │                 └▶ stuck ────┤
//	   └──────────────────────────────┴▶ leaving ──▶ (released, or dropped)
type held struct {
	row    *model.Dataset
	ticket model.Ticket
	place  int // in hand.rows

	state   atomic.Int32
	lease   atomic.Int64 // by the worker's clock: until when it is surely ours
	lost    atomic.Bool  // a newer claim exists
	lostAt  atomic.Int64
	start   atomic.Int64            // when the handler was called
	cancel  context.CancelCauseFunc // set before state becomes running
	attempt atomic.Pointer[attempt]

	// What follows is the slot's until the row is settled, then the
	// committer's.
	fate     fate
	outcome  model.Outcome
	called   bool    // the handler was called, and nothing cut it off
	blamed   bool    // the call failed, and it isn't the row's fault
	cost     float64 // of the call
	probe    bool    // it was started to see whether the handler serves again
	discard  func()  // to be called if the outcome isn't stored; may be nil
	failure  string  // of that call, if it failed
	reserved int64   // bytes of the room for results
	refusals int     // how often the database refused this very outcome
	stored   bool
}

// attempt is one call of the handler: for one row, or for several in common.
type attempt struct {
	slot    *slot
	rows    int
	refused bool // counted by the breaker, and guarded by it
}

// States of a held row.
const (
	waiting  int32 = iota // in the buffer, or in a slot that can't start it yet
	running               // in its handler
	returned              // its handler has returned and is being judged
	stuck                 // its handler ignores its cancel, and is not waited for
	finished              // has an outcome
	leaving               // will be released or dropped
)

// fate is what is to be done with a settled row.
type fate uint8

const (
	checkIn fate = iota + 1 // store its outcome
	release                 // give it back, attempt refunded
	drop                    // it is somebody else's by now
)

func newHeld(c *model.Claim, leaseEnd time.Duration) *held {
	h := &held{row: &c.Dataset, ticket: c.Ticket()}
	h.lease.Store(int64(leaseEnd))
	return h
}

// tries counts the tries that ended by themselves, the present one included.
func (h *held) tries() int { return int(h.row.Attempts - h.row.Losses) }

// suspect tells whether the row lost a worker before and must run alone; one that
// lost too many isn't run at all.
func (h *held) suspect(maxAttempts int) bool {
	return h.row.Losses > 0 && int(h.row.Losses) <= maxAttempts
}

// size is what the row adds to the data in hand.
func (h *held) size() int64 { return int64(len(h.row.Data)) }

func (h *held) leaseEnd() time.Duration { return time.Duration(h.lease.Load()) }

// begin marks the row as running in a call; cancel ends its handler's context.
func (h *held) begin(a *attempt, now time.Duration, cancel context.CancelCauseFunc) {
	h.cancel = cancel
	h.attempt.Store(a)
	h.start.Store(int64(now))
	h.state.Store(running)
	if h.lost.Load() { // found out just before cancel was there to be called
		cancel(ErrLeaseLost)
	}
}

// back tells whether the row is the slot's still, whose handler has returned. If it
// isn't, the handler was found stuck, and the row has been settled without it.
func (h *held) back() bool { return h.state.CompareAndSwap(running, returned) }

// end notes that the row's fate is decided.
func (h *held) end() {
	if h.fate == checkIn {
		h.state.Store(finished)
	} else {
		h.state.Store(leaving)
	}
}

// lose notes that the row is somebody else's, cancels its handler, and tells
// whether that is news. An outcome that is waiting to be stored is left alone:
// only its check-in can tell a lost claim from one whose answer was lost.
func (h *held) lose(now time.Duration) bool {
	if h.state.Load() >= finished || !h.lost.CompareAndSwap(false, true) {
		return false
	}
	h.lostAt.Store(int64(now))
	if h.state.Load() == running {
		h.cancel(ErrLeaseLost)
	}
	return true
}

// dropPrepared tells the handler that its outcome is not stored.
func (h *held) dropPrepared() {
	discard := h.discard
	h.discard = nil
	if discard == nil {
		return
	}
	defer func() { _ = recover() }() // what can't be tidied up must not end the worker
	discard()
}

// clear drops what takes memory: rows of one check-out share an allocation, which
// lives as long as the last of them.
func (h *held) clear() {
	h.row.Data = nil
	h.outcome = model.Outcome{}
	h.discard = nil
}
