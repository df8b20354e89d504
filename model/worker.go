package model

import "time"

// Worker is what a worker tells of itself in its row of workers, and what is known
// of it by that.
type Worker struct {
	Holder  string `json:"holder"` // under which it holds rows
	Host    string `json:"host"`
	PID     int    `gorm:"column:pid" json:"pid"`
	Program string `json:"program"` // version of windrow
	Version string `json:"version"` // of the handler; empty: it has none
	Slots   int    `json:"slots"`
	// Lease is how long its claims are safe, in seconds.
	Lease float64 `json:"lease_seconds"`

	// The instants are the database's; a store fills them in.
	StartedAt  time.Time  `json:"started_at"`
	SeenAt     time.Time  `json:"seen_at"`
	ExpectedBy time.Time  `json:"expected_by"` // it is gone if it has not been seen again by then
	StoppedAt  *time.Time `json:"stopped_at"`  // it said that it ends

	InFlight int   `json:"in_flight"` // rows that it holds
	Done     int64 `json:"done"`      // outcomes stored
	Failed   int64 `json:"failed"`
	Retried  int64 `json:"retried"`
	Released int64 `json:"released"`
	Lost     int64 `json:"lost"`
	// Conflicts are transactions that had to be done again; a store fills them in.
	Conflicts int64 `json:"conflicts"`
	// Rate is the rows done or failed in a second, over the last minute.
	Rate float64 `json:"rate"`
	// Trouble is why the worker is slowed down; empty: it isn't.
	Trouble string `json:"trouble"`
}

// State tells how the worker is at the instant now of the database's clock.
func (w Worker) State(now time.Time) WorkerState {
	switch {
	case w.StoppedAt != nil:
		return WorkerStopped
	case now.After(w.ExpectedBy):
		return WorkerGone
	case w.Trouble != "":
		return WorkerSlowed
	default:
		return WorkerLive
	}
}

// IsThere tells whether the worker runs, live or slowed, at the instant now of the
// database's clock.
func (w Worker) IsThere(now time.Time) bool {
	s := w.State(now)
	return s == WorkerLive || s == WorkerSlowed
}

// WorkerState is how a worker is, by what it has told.
type WorkerState string

// The states of a worker.
const (
	WorkerLive    WorkerState = "live"
	WorkerSlowed  WorkerState = "slowed"  // its handler can't serve: it only probes
	WorkerStopped WorkerState = "stopped" // it ended in good order
	WorkerGone    WorkerState = "gone"    // it has not been seen when it should have been
)
