package processor

import (
	"time"

	"github.com/windrow-go/windrow/model"
)

const (
	workInHand  = 250 * time.Millisecond
	maxData     = 32 << 20 // bytes of data in hand
	firstClaims = 16       // the most rows that are asked for when nothing is known
)

// pace decides how many rows to hold and to ask for. It is the claimer's alone.
type pace struct {
	slots, maxBatch, limit int
	least                  int           // unfinished rows to have at least
	floor                  time.Duration // what a row takes at least, given the rate that is allowed

	mean time.Duration // of a handler call, newer ones weighing more; 0 = none has ended
	size float64       // bytes of a row's data
	ramp int           // the most to ask for: grows fourfold with each check-out

	calls int64 // what observe was told last
	spent time.Duration
}

func newPace(o Options, limit int) *pace {
	p := &pace{slots: o.Concurrency, maxBatch: o.MaxBatch, limit: limit, least: o.Concurrency}
	if o.BatchRows > 1 {
		p.least = 2 * o.Concurrency * o.BatchRows // the next batches while these are worked
	}
	if o.Rate > 0 {
		p.floor = time.Duration(float64(o.Concurrency) / o.Rate * float64(time.Second))
	}
	p.restart()
	return p
}

// restart forgets the measured time, which proved wrong.
func (p *pace) restart() {
	p.mean = 0
	p.ramp = min(p.least, max(firstClaims, p.least/2), p.maxBatch)
}

// observe is told how many calls have ended since the start, and how long all of
// them took. What is new weighs as much as all that is older.
func (p *pace) observe(calls int64, spent time.Duration) {
	n := calls - p.calls
	if n <= 0 {
		return
	}
	mean := max((spent-p.spent)/time.Duration(n), p.floor, 1)
	if p.mean > 0 {
		mean = (p.mean + mean) / 2
	}
	p.calls, p.spent, p.mean = calls, spent, mean
}

// perSlot is how many rows a slot gets through in the time to hold work for.
func (p *pace) perSlot() int {
	if p.mean == 0 {
		return 0
	}
	return int(min(int64(workInHand/p.mean), int64(p.limit)))
}

// want is how many unfinished rows to have.
func (p *pace) want() int {
	return min(max(p.perSlot()*p.slots, p.least), p.limit)
}

// low is how few unfinished rows are reason to claim: half of what is wanted, or
// an idle slot.
func (p *pace) low() int { return max(p.want()/2, p.slots-1) }

// sparse tells whether outcomes come so far apart that waiting for company before
// storing one would be in vain.
func (p *pace) sparse() bool { return p.mean > batchDelay*time.Duration(p.slots) }

// ask returns how many rows to claim, with so many unfinished rows, rows and
// bytes in hand; 0 means later.
func (p *pace) ask(unfinished, total int, bytes int64) int {
	if p.perSlot() == 0 {
		unfinished = total // rows are slow: it doesn't hurt to store before taking another
	}
	need := min(p.want()-unfinished, p.maxBatch)
	room := min(need, p.limit-total)
	if unfinished > p.low() || need <= 0 || 2*room < need {
		return 0 // a check-out for a few rows costs as much as one for many
	}
	if p.size > 0 {
		room = min(room, p.fit(maxData-bytes))
	}
	return max(min(room, p.ramp), 0)
}

// fit returns how many rows of the usual size fit into bytes, but one at least if
// there is any room.
func (p *pace) fit(bytes int64) int {
	if bytes <= 0 {
		return 0
	}
	return max(int(float64(bytes)/p.size), 1)
}

// claimed is told what a check-out brought. Larger rows are believed at once,
// smaller ones slowly, for the sake of memory.
func (p *pace) claimed(rows []model.Claim) {
	p.ramp = min(4*p.ramp, p.maxBatch)
	sum := 0
	for _, r := range rows {
		sum += len(r.Data)
	}
	mean := float64(sum) / float64(len(rows))
	if mean > p.size {
		p.size = mean
		return
	}
	p.size += (mean - p.size) / 4
}
