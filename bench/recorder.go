package bench

import (
	"sync"
	"sync/atomic"
	"time"
)

// recorder notes what a worker does, as it does it.
type recorder struct {
	done, lost, handling atomic.Int64

	mu        sync.Mutex
	checkOuts []int32 // microseconds each
	empty     int64
	conflicts map[string]int64
	slices    map[int64]int64 // rows finished, by slice of time
	first     time.Time       // begin of the first check-out that brought rows
}

// sliceTime is how finely finished rows are counted over time.
const sliceTime = 10 * time.Millisecond

func newRecorder() *recorder {
	return &recorder{conflicts: map[string]int64{}, slices: map[int64]int64{}}
}

func (r *recorder) checkedOut(began time.Time, rows int) {
	took := time.Since(began)
	r.mu.Lock()
	defer r.mu.Unlock()
	if rows == 0 {
		r.empty++
		return
	}
	if r.first.IsZero() {
		r.first = began
	}
	r.checkOuts = append(r.checkOuts, int32(min(took.Microseconds(), 1<<31-1)))
}

func (r *recorder) finished(rows int) {
	r.done.Add(int64(rows))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slices[time.Now().UnixNano()/int64(sliceTime)] += int64(rows)
}

func (r *recorder) conflict(op, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conflicts[op+": "+reason]++
}

// report is what a worker has to say in the end.
type report struct {
	Done, Lost int64
	Handling   time.Duration // in handlers, over all slots
	CheckOuts  []int32       // microseconds
	Empty      int64
	Conflicts  map[string]int64
	Slices     map[int64]int64
	First      time.Time
	Memory     int64 // the process's peak, in bytes
}

func (r *recorder) report() *report {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &report{
		Done: r.done.Load(), Lost: r.lost.Load(), Handling: time.Duration(r.handling.Load()),
		CheckOuts: r.checkOuts, Empty: r.empty, Conflicts: r.conflicts, Slices: r.slices, First: r.first,
		Memory: PeakMemory(),
	}
}
