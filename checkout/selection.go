package checkout

import (
	"errors"
	"fmt"
	"strings"

	"github.com/windrow-go/windrow/model"
)

// Selection says which rows a reprocess puts back. Exactly one field is set.
type Selection struct {
	// Failed selects the rows that failed for good.
	Failed bool
	// All selects every row that was ever tried.
	All bool
	// Keys selects rows by the caller's own keys.
	Keys []string
}

// String is how a run's row describes the selection.
func (s Selection) String() string {
	switch {
	case s.Failed:
		return "failed"
	case s.All:
		return "all"
	default:
		return fmt.Sprintf("%d keys", len(s.Keys))
	}
}

var errSelection = errors.New("select rows by exactly one of: failed, all, keys")

func (s Selection) validate() error {
	n := 0
	for _, set := range []bool{s.Failed, s.All, len(s.Keys) > 0} {
		if set {
			n++
		}
	}
	if n != 1 {
		return errSelection
	}
	return nil
}

// Reprocessed tells what a reprocess did.
type Reprocessed struct {
	// Run is the id of its row in runs, which the rows put back carry.
	Run int64 `json:"run"`
	// PutBack counts the rows that may be checked out again.
	PutBack int64 `json:"put_back"`
	// Deferred counts the rows that a worker holds: they begin their next round
	// at their check-in.
	Deferred int64 `json:"deferred"`
	// Missing are keys that no row has.
	Missing []string `json:"missing,omitempty"`
}

// Counts are the rows by state.
type Counts map[model.State]int64

// Total is the number of all rows.
func (c Counts) Total() int64 {
	var n int64
	for _, k := range c {
		n += k
	}
	return n
}

// Unprocessed is the number of rows that are still to be worked.
func (c Counts) Unprocessed() int64 {
	return c.Total() - c[model.Done] - c[model.Failed]
}

// chunk is how many rows one transaction of a reprocess touches.
const chunk = 2000

// keysCondition and friends are the selections as SQL over a row named d; @began
// is when the run began. Rows checked out since then are worked with what the run
// is about, and are left alone. The words are both engines'.
const (
	failedCondition = `d.is_processed AND d.error IS NOT NULL AND d.last_checkout <= @began `
	triedCondition  = `(d.is_processed OR d.checked_out_by IS NOT NULL OR d.attempts > 0) AND d.last_checkout <= @began `
)

func (s Selection) condition() string {
	if s.Failed {
		return failedCondition
	}
	return triedCondition
}

// cleanKeys drops repeated keys and empty ones.
func cleanKeys(keys []string) []string {
	seen := map[string]bool{"": true}
	var clean []string
	for _, key := range keys {
		key = strings.TrimSpace(key)
		if !seen[key] {
			seen[key] = true
			clean = append(clean, key)
		}
	}
	return clean
}
