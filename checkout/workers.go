package checkout

import (
	"sync/atomic"
	"time"
)

const (
	// reportSlack is how much later than promised a worker may report before it
	// counts as gone.
	reportSlack = 20 * time.Second
	// tidyEvery is how often a worker sums its tallies up and forgets others.
	tidyEvery = 5 * time.Minute
	// foldAfter is how old a tally is before it is summed up. The younger ones tell
	// the rate of the last minute.
	foldAfter = 2 * time.Minute
	// forgetAfter is how long a worker that is gone is remembered.
	forgetAfter = 24 * time.Hour
)

// pausedNote names the note that tells who has paused the job.
const pausedNote = "paused"

// registry is what a store knows of the worker that uses it.
type registry struct {
	conflicts atomic.Int64
	tidied    atomic.Int64 // when it last tidied up, by the process's clock
}

// counting makes the options count conflicts besides telling of them.
func (r *registry) counting(o Options) Options {
	tell := o.OnConflict
	o.OnConflict = func(op string, reason string) {
		r.conflicts.Add(1)
		tell(op, reason)
	}
	return o
}

// untidy tells whether it is time to tidy up, which it is at the first report.
func (r *registry) untidy() bool {
	last, now := r.tidied.Load(), time.Now().UnixNano()
	return now-last > int64(tidyEvery) && r.tidied.CompareAndSwap(last, now)
}

// workerColumns are what a worker tells of itself.
const workerColumns = `holder, host, pid, program, version, slots, lease,
	in_flight, done, failed, retried, released, lost, conflicts, rate, trouble`
