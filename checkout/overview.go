package checkout

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/windrow-go/windrow/model"
)

// Overview is how a job stands, found quickly however large it is: from the tallies
// that check-ins leave and by the indexes, without a pass over the table.
type Overview struct {
	// Counts are the rows by state; those of the states in Estimated are estimates.
	Counts Counts
	// Estimated are the states whose counts, and with any of them the total, are not
	// exact: rows have come or gone by other ways than windrow's, or are too many to
	// be counted in time.
	Estimated []model.State
	// Rate is how many rows a second have become done or failed in the last minute.
	Rate float64
	// OldestDue is for how long the row that has been due longest has been waiting to
	// be checked out again; rows that were never held don't count. Zero: none is.
	OldestDue time.Duration
	// Workers are those that are remembered, the latest first.
	Workers []model.Worker
	// Now is the database's clock.
	Now time.Time
	// PausedBy is who has paused the job; empty: nobody has.
	PausedBy string
}

// Exact tells whether no count is an estimate.
func (o Overview) Exact() bool { return len(o.Estimated) == 0 }

// IsEstimate tells whether the count of a state is one.
func (o Overview) IsEstimate(s model.State) bool { return slices.Contains(o.Estimated, s) }

// Live are the workers that are at work, slowed down ones included.
func (o Overview) Live() []model.Worker {
	return slices.DeleteFunc(slices.Clone(o.Workers), func(w model.Worker) bool {
		s := w.State(o.Now)
		return s == model.WorkerStopped || s == model.WorkerGone
	})
}

// ETA is how long the rows that are left will take at the present rate; negative if
// that can't be told.
func (o Overview) ETA() time.Duration {
	left := o.Counts.Unprocessed()
	switch {
	case left == 0:
		return 0
	case o.Rate <= 0:
		return -1
	}
	return time.Duration(float64(left) / o.Rate * float64(time.Second))
}

// RecentRate is Rate, or, while nobody is at work, how fast the last workers were in
// their last minute; 0: not known.
func (o Overview) RecentRate() float64 {
	if o.Rate > 0 {
		return o.Rate
	}
	var latest time.Time
	for _, w := range o.Workers {
		if w.Rate > 0 && w.SeenAt.After(latest) {
			latest = w.SeenAt
		}
	}
	rate := 0.0
	for _, w := range o.Workers {
		if latest.Sub(w.SeenAt) < time.Minute {
			rate += w.Rate
		}
	}
	return rate
}

const (
	// smallTable is up to how many ids a table is counted: that takes no longer than
	// a look at the tallies is worth.
	smallTable = 200_000
	// openBudget is how long the rows that are held or wait may be counted. While
	// somebody holds an old snapshot, the index entries of all rows finished lately
	// stand among theirs.
	openBudget = 400 * time.Millisecond
	// freshBudget is how long it may take to see whether a row is fresh.
	freshBudget = 200 * time.Millisecond
	// sampled is how many ids an estimate is made of.
	sampled = 4000
	// tolerance is by which share of the ids the tallies may differ from a sample and
	// still be believed rather than it: three times the sample's own error.
	tolerance = 0.03
)

// overviewFacts are what an overview is put together from.
type overviewFacts struct {
	First, Last *int64 // ids
	Total       int64  // rows that came by loads, corrected
	IDs         int64  `gorm:"column:ids"` // that those take up at most
	Done        int64
	Failed      int64
	Lately      int64 // done or failed in the last minute

	open     Counts        // in flight, expired, waiting, and come due again (fresh); nil: too many
	due      time.Duration // OldestDue
	anyFresh *bool         // whether a row was never held or put back; nil: not known
}

// span is how many ids there are from the first to the last.
func (f *overviewFacts) span() int64 {
	if f.First == nil || f.Last == nil {
		return 0
	}
	return *f.Last - *f.First + 1
}

// counts puts the states together from tallies and counts of the open rows. It
// reports false if they can't be true.
func (f *overviewFacts) counts() (Counts, bool) {
	if f.open == nil {
		return nil, false
	}
	c := Counts{model.Done: f.Done, model.Failed: f.Failed}
	for state, n := range f.open {
		c[state] = n
	}
	c[model.Fresh] = 0
	c[model.Fresh] = f.Total - c.Total()
	possible := f.Done >= 0 && f.Failed >= 0 && c[model.Fresh] >= 0 && f.Total <= f.span() &&
		(f.anyFresh == nil || *f.anyFresh == (c[model.Fresh] > f.open[model.Fresh]))
	return c, possible
}

// explained tells whether all ids are those of rows that windrow has loaded.
func (f *overviewFacts) explained() bool { return f.span() <= f.IDs }

// overviewer is a store as an overview sees it.
type overviewer interface {
	overviewFacts(ctx context.Context) (*overviewFacts, error)
	sampleStates(ctx context.Context, ids []int64) (Counts, error)
	Counts(ctx context.Context) (Counts, error)
	Workers(ctx context.Context) ([]model.Worker, time.Time, error)
	Note(ctx context.Context, name string) (string, error)
}

// overview makes an overview; with exact, of a pass over the whole table.
func overview(ctx context.Context, s overviewer, exact bool) (o Overview, err error) {
	facts, err := s.overviewFacts(ctx)
	if err != nil {
		return o, err
	}
	if o.Workers, o.Now, err = s.Workers(ctx); err != nil {
		return o, err
	}
	if o.PausedBy, err = s.Note(ctx, pausedNote); err != nil {
		return o, err
	}
	o.OldestDue = facts.due
	o.Rate = float64(facts.Lately) / o.window().Seconds()
	if exact || facts.span() <= smallTable {
		o.Counts, err = s.Counts(ctx)
		return o, err
	}
	counts, possible := facts.counts()
	if possible && facts.explained() {
		o.Counts = counts
		return o, nil
	}
	return o, o.estimate(ctx, s, facts, counts, possible)
}

// window is over how much of the last minute there have been workers.
func (o *Overview) window() time.Duration {
	longest := time.Duration(0)
	for _, w := range o.Workers {
		if o.Now.Sub(w.SeenAt) < time.Minute {
			longest = max(longest, o.Now.Sub(w.StartedAt), time.Second)
		}
	}
	if longest == 0 { // none that has told of itself
		return time.Minute
	}
	return min(longest, time.Minute)
}

// estimate takes the states of some random ids for those of all. What could be
// counted stays as it is.
func (o *Overview) estimate(ctx context.Context, s overviewer, facts *overviewFacts, tallied Counts, possible bool) error {
	ids := make([]int64, sampled)
	for i := range ids {
		ids[i] = *facts.First + rand.Int64N(facts.span())
	}
	slices.Sort(ids)
	hits, err := s.sampleStates(ctx, slices.Compact(ids))
	if err != nil {
		return err
	}
	scale := float64(facts.span()) / float64(len(slices.Compact(ids)))
	o.Counts = Counts{}
	for state, n := range hits {
		o.Counts[state] = int64(float64(n) * scale)
	}
	o.Estimated = []model.State{model.Fresh, model.Done, model.Failed}
	if possible && within(tallied, o.Counts, int64(tolerance*float64(facts.span()))) {
		o.Counts = tallied
		o.Estimated = []model.State{model.Fresh}
		return nil
	}
	if facts.open == nil {
		o.Estimated = append(o.Estimated, model.InFlight, model.Waiting, model.Expired)
	}
	for _, state := range []model.State{model.InFlight, model.Waiting, model.Expired} {
		if facts.open != nil {
			o.Counts[state] = facts.open[state]
		}
	}
	if o.Counts[model.Failed] == 0 {
		o.Counts[model.Failed] = max(facts.Failed, 0) // too few for a sample
	}
	return nil
}

// within tells whether counts differ by no more than that.
func within(a, b Counts, by int64) bool {
	for state, n := range a {
		if d := n - b[state]; d > by || -d > by {
			return false
		}
	}
	return true
}
