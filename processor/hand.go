package processor

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windrow-go/windrow/model"
)

// hand is everything that this worker holds: waiting, running, and finished but
// not yet checked in. Its lock is taken once a batch, never once a row.
type hand struct {
	mu      sync.Mutex
	rows    []*held
	renewed chan struct{} // closed and replaced after each pass of the renewer
	fewer   chan struct{} // tells a row that must run alone that others have gone
	taken   chan struct{} // tells the renewer that there is something in hand again

	unfinished atomic.Int64 // rows waiting or running
	count      atomic.Int64 // all rows
	bytes      atomic.Int64 // data of the unfinished
	alone      atomic.Int64 // unfinished rows that must run alone
	busy       atomic.Int64 // rows in their handlers
	stuck      atomic.Int64 // of these: stuck

	stray map[*held]bool // those stuck, settled or not; under mu
}

func newHand() *hand {
	return &hand{renewed: make(chan struct{}), fewer: make(chan struct{}, 1), taken: make(chan struct{}, 1), stray: map[*held]bool{}}
}

// add takes the rows of a check-out in hand.
func (d *hand) add(rows []*held) {
	d.mu.Lock()
	for _, h := range rows {
		h.place = len(d.rows)
		d.rows = append(d.rows, h)
	}
	d.mu.Unlock()

	var alone, size int64
	for _, h := range rows {
		size += h.size()
		if h.row.Losses > 0 {
			alone++
		}
	}
	d.bytes.Add(size)
	d.alone.Add(alone)
	d.unfinished.Add(int64(len(rows)))
	if d.count.Add(int64(len(rows))) == int64(len(rows)) {
		poke(d.taken)
	}
}

// finish notes that a row has been settled and returns how many are unfinished.
func (d *hand) finish(size int64, alone bool) int64 {
	d.bytes.Add(-size)
	if alone {
		d.alone.Add(-1)
	}
	return d.unfinished.Add(-1)
}

// remove lets settled rows go.
func (d *hand) remove(rows []*held) {
	d.mu.Lock()
	for _, h := range rows {
		last := d.rows[len(d.rows)-1]
		d.rows[h.place], last.place = last, h.place
		d.rows[len(d.rows)-1] = nil
		d.rows = d.rows[:len(d.rows)-1]
		h.clear()
	}
	d.mu.Unlock()
	d.count.Add(-int64(len(rows)))
	poke(d.fewer)
}

// solitary tells whether at most one row is in hand.
func (d *hand) solitary() bool { return d.count.Load() <= 1 }

// strays notes that a handler is stuck, and returned that it is no longer.
func (d *hand) strays(h *held) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stray[h] = true
	d.stuck.Add(1)
}

func (d *hand) returned(h *held) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.stray, h)
	d.stuck.Add(-1)
}

// leftBehind returns the rows whose handlers have not returned.
func (d *hand) leftBehind() []*held {
	left := d.filter(func(h *held) bool { return h.state.Load() == running })
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.AppendSeq(left, maps.Keys(d.stray))
}

// filter returns the rows that keep returns true for.
func (d *hand) filter(keep func(*held) bool) []*held {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []*held
	for _, h := range d.rows {
		if keep(h) {
			out = append(out, h)
		}
	}
	return out
}

// endingBefore counts the claims that are wanted still and end before at.
func (d *hand) endingBefore(at time.Duration) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, h := range d.rows {
		if h.leaseEnd() < at && h.renewable() {
			n++
		}
	}
	return n
}

// idle tells whether nothing is in hand.
func (d *hand) idle() bool { return d.count.Load() == 0 }

// nextRenewal returns a channel that is closed after the renewer's next pass.
func (d *hand) nextRenewal() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.renewed
}

func (d *hand) announceRenewal() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.renewed)
	d.renewed = make(chan struct{})
}

// extend sets the leases of rows to end, but for those in lost, which it returns.
func extend(rows []*held, end time.Duration, lost []model.Ticket) []*held {
	gone := make(map[model.Ticket]bool, len(lost))
	for _, t := range lost {
		gone[t] = true
	}
	var out []*held
	for _, h := range rows {
		if len(gone) > 0 && gone[h.ticket] {
			out = append(out, h)
			continue
		}
		h.lease.Store(int64(end))
	}
	return out
}
