package processor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Why a handler's context ended; see context.Cause.
var (
	// ErrLeaseLost: the database says that the row's claim has been overtaken
	// by a newer one. Whatever the handler returns is dropped.
	ErrLeaseLost = errors.New("the lease on this row is lost")
	// ErrStopping: the worker is stopping and its grace period is over. A
	// result is still stored; on an error the row is given back, with its
	// attempt refunded.
	ErrStopping = errors.New("the worker is stopping")
	// ErrTimeout: the row has used up [Options].Timeout.
	ErrTimeout = errors.New("the row has used up its time")
)

var (
	// errEmpty is the reason for stopping when UntilEmpty is fulfilled.
	errEmpty    = errors.New("nothing is left to do")
	errAllStuck = errors.New("every slot is occupied by a handler that ignores its cancel")
)

// StuckError tells that Run left handlers behind that did not return after their
// context was cancelled. They still occupy their goroutines; end the process.
type StuckError struct {
	// Rows are the ids of the rows, ascending. They are not held by this worker
	// any more, or will not be when their leases have run out.
	Rows []int64
}

// Error names the rows, the first ten at least.
func (e *StuckError) Error() string {
	const most = 10
	var ids []string
	for _, id := range e.Rows[:min(most, len(e.Rows))] {
		ids = append(ids, fmt.Sprint(id))
	}
	if more := len(e.Rows) - most; more > 0 {
		ids = append(ids, fmt.Sprintf("%d more", more))
	}
	return "handlers that ignore their cancel were left behind: rows " + strings.Join(ids, ", ")
}

func stuckError(rows []*held) error {
	if len(rows) == 0 {
		return nil
	}
	e := &StuckError{}
	for _, h := range rows {
		e.Rows = append(e.Rows, h.ticket.ID)
	}
	slices.Sort(e.Rows)
	return e
}
