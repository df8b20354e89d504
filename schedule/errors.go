package schedule

import "errors"

// What a store refuses; test with errors.Is.
var (
	// ErrExists: there is a schedule of that name.
	ErrExists = errors.New("there is a schedule of that name")
	// ErrNotFound: there is no such schedule, or no such run.
	ErrNotFound = errors.New("not found")
	// ErrPast: a run is to be entered for a time that has passed.
	ErrPast = errors.New("the time has passed")
	// ErrWaiting: a run of that kind waits already. At most one regular and one
	// on-demand run of a schedule wait at a time.
	ErrWaiting = errors.New("a run of that kind is waiting already")
	// ErrTaken: there is, or was, a regular run of the schedule for that time.
	ErrTaken = errors.New("there is a run for that time")
	// ErrFinished: the run is over.
	ErrFinished = errors.New("the run is over")
)

// Why a run was told to stop: the cause of its context.
var (
	// ErrCancelled: somebody cancelled the run.
	ErrCancelled = errors.New("cancelled")
	// ErrLockLost: the run's lock can't be relied on any more, since the connection
	// to the database was lost, or its lease could not be renewed in time, or
	// another scheduler found the holder gone.
	ErrLockLost = errors.New("the lock was lost")
	// ErrTimeout: the run took longer than its schedule allows.
	ErrTimeout = errors.New("timed out")
	// ErrStopped: the scheduler was stopped, and the grace period is over.
	ErrStopped = errors.New("the scheduler was stopped")
)
