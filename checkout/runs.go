package checkout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// runWriter is under which name a run writes tallies.
func runWriter(run int64) string { return fmt.Sprintf("run/%d", run) }

// leftBudget is how long the rows of runs that are left may be counted.
const leftBudget = 500 * time.Millisecond

// selectionCounter is a store as a count of a selection sees it.
type selectionCounter interface {
	idsOf(ctx context.Context, keys []string) (map[string]int64, error)
	countSelected(ctx context.Context, sel Selection, ids []int64) (Counts, error)
}

func countSelection(ctx context.Context, s selectionCounter, sel Selection) (Counts, error) {
	if err := sel.validate(); err != nil {
		return nil, err
	}
	if !sel.byKeys() {
		return s.countSelected(ctx, sel, nil)
	}
	counts := countsOf(nil)
	err := sel.eachKeys(func(keys []string, _ int64) error {
		found, err := s.idsOf(ctx, keys)
		if err != nil {
			return err
		}
		some, err := s.countSelected(ctx, sel, slices.Collect(maps.Values(found)))
		counts.add(some)
		return err
	})
	return counts, err
}

// firstOf returns the ids of the first n rows of a selection, in the order of ids or
// of the keys.
func firstOf(ctx context.Context, s reprocessor, sel Selection, n int) ([]int64, error) {
	if err := sel.validate(); err != nil {
		return nil, err
	}
	var first []int64
	enough := errors.New("enough")
	r := &reprocessing{s: s, sel: sel, run: Run{CreatedAt: time.Now().UTC().Add(24 * time.Hour), position: math.MinInt64}}
	take := func(_ context.Context, ids []int64, _ int64) error {
		if first = append(first, ids...); len(first) >= n {
			first = first[:n]
			return enough
		}
		return nil
	}
	var err error
	if sel.byKeys() {
		err = r.keys(ctx, take)
	} else {
		err = r.scan(ctx, math.MinInt64+1, take)
	}
	if errors.Is(err, enough) {
		err = nil
	}
	return first, err
}

// canceller is a store as a cancel sees it.
type canceller interface {
	// cancelRun marks a run, so that nobody puts back more of its rows.
	cancelRun(ctx context.Context, id int64) (Run, error)
	// lookAtRun looks at the next unprocessed rows after an id, some thousand at most,
	// and returns those of the run, and the last id that was looked at, if any was.
	lookAtRun(ctx context.Context, run, after int64) (ids []int64, upTo int64, found bool, err error)
	// restore puts those of the rows back as they were that nobody holds.
	restore(ctx context.Context, run *Run, ids []int64) error
}

// cancelRun stops a run and puts its rows back as they were before it, chunk by chunk.
// Asked again after it was cut off, it goes on.
func cancelRun(ctx context.Context, s canceller, id int64, progress func(Run) error) (Run, error) {
	run, err := s.cancelRun(ctx, id)
	if err != nil {
		return run, err
	}
	for after := int64(math.MinInt64); ; {
		ids, upTo, found, err := s.lookAtRun(ctx, id, after)
		if err != nil || !found {
			return run, err
		}
		if len(ids) > 0 {
			if err := s.restore(ctx, &run, ids); err != nil {
				return run, err
			}
		}
		if err := progress(run); err != nil {
			return run, err
		}
		after = upTo
	}
}

// Former is an outcome of a row that was, or will be, replaced.
type Former struct {
	Round       int32           `json:"round"`  // the one that ended with it
	RunID       int64           `json:"run_id"` // the run that put the row back after it
	ProcessedAt *time.Time      `json:"processed_at"`
	Version     *string         `json:"version"`
	Error       *string         `json:"error"`
	Result      json.RawMessage `json:"result"`
}

// Change tells how a row's outcome after a run compares to the one before.
type Change string

// The changes. Rows of which there is no new outcome yet are pending.
const (
	Same       Change = "same"
	Changed    Change = "changed"     // both have a result, and these differ
	NowFailing Change = "now_failing" // it had a result
	NowDone    Change = "now_done"    // it had failed
	StillFails Change = "still_fails" // maybe with another error
	Pending    Change = "pending"
)

// Changes are all changes, those that matter most first.
var Changes = []Change{NowFailing, Changed, NowDone, StillFails, Same, Pending}

// Comparison is one row's outcome before and after a run.
type Comparison struct {
	Change    Change
	ID        int64
	Key       *string
	OldResult json.RawMessage
	OldError  *string
	NewResult json.RawMessage
	NewError  *string
}

// Diff is a run's outcomes compared to those before it.
type Diff struct {
	Counts  map[Change]int64
	Samples []Comparison // some of each change but Same and Pending
}
