package checkout

import "github.com/windrow-go/windrow/model"

// tally is by how much one transaction changes the number of rows that stand
// processed. Whoever changes it adds a row to tallies; the sum of them all is the
// number, without counting.
type tally struct {
	writer       string
	done, failed int64
}

func (t *tally) add(verdict model.Verdict, n int64) {
	if verdict == model.VerdictFailed {
		t.failed += n
		return
	}
	t.done += n
}

func (t *tally) empty() bool { return t.done == 0 && t.failed == 0 }
