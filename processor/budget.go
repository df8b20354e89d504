package processor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/windrow-go/windrow/internal/jsonb"
)

// budgetWindow is how many of the newest handler calls a share is taken of.
const budgetWindow = 100

// Budget says how many failing handler calls are too many. A call fails by
// returning an error, by a panic, or with a result that can't be stored; calls
// whose row was lost or that a stop cut off don't count.
type Budget struct {
	// Share is exceeded when more than this part of the last 100 calls failed,
	// from 0 to 1; it is judged from the hundredth call on. 0: no limit.
	Share float64
	// Count is exceeded when more calls than this have failed since the start.
	// 0: no limit.
	Count int64
}

// TooManyFailures ends Run when its [Budget] is exceeded. The worker has stopped
// in good order: everything that was finished is stored.
type TooManyFailures struct {
	// Failed of the last Calls handler calls failed; at most 100 are looked at.
	Failed, Calls int
	// Total is how many failed since the start.
	Total int64
	// Commonest are the most frequent error texts among those last calls, at
	// most three, the most frequent first.
	Commonest []FailureText
}

// FailureText is an error text, shortened, and how often it occurred.
type FailureText struct {
	Text  string
	Count int
}

// Error gives the counts and the commonest texts.
func (e *TooManyFailures) Error() string {
	s := fmt.Sprintf("too many failures: %d of the last %d handler calls, %d in all", e.Failed, e.Calls, e.Total)
	for _, t := range e.Commonest {
		s += fmt.Sprintf("; %d× %s", t.Count, t.Text)
	}
	return s
}

// tally watches over a Budget. It is the committer's alone, so that counting
// costs the slots nothing.
type tally struct {
	budget Budget
	texts  [budgetWindow]string // of the last calls; "" = it was all right
	calls  int64
	failed int   // of those in texts
	total  int64 // since the start
}

// add counts one call, text being its error if it failed, and returns an error if
// that was one too many.
func (t *tally) add(text string) error {
	if t.budget == (Budget{}) {
		return nil
	}
	place := &t.texts[t.calls%budgetWindow]
	if *place != "" {
		t.failed--
	}
	*place = jsonb.SafeText(text, 200)
	t.calls++
	if text != "" {
		t.failed++
		t.total++
	}
	if t.exceeded() {
		return t.err()
	}
	return nil
}

func (t *tally) exceeded() bool {
	if t.budget.Count > 0 && t.total > t.budget.Count {
		return true
	}
	share := float64(t.failed) / budgetWindow
	return t.budget.Share > 0 && t.calls >= budgetWindow && share > t.budget.Share
}

func (t *tally) err() error {
	counts := map[string]int{}
	for _, text := range t.texts {
		if text != "" {
			counts[text]++
		}
	}
	texts := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b))
	})
	e := &TooManyFailures{Failed: t.failed, Calls: int(min(t.calls, budgetWindow)), Total: t.total}
	for _, text := range texts[:min(3, len(texts))] {
		e.Commonest = append(e.Commonest, FailureText{Text: text, Count: counts[text]})
	}
	return e
}
