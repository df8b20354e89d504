package checkout

import (
	"context"
	"math"
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
	// Estimated are the states whose counts are not exact: rows have come or gone by
	// other ways than windrow's, or are too many to be counted in time.
	Estimated []model.State
	// TotalEstimated is whether the sum of all counts is not exact either.
	TotalEstimated bool
	// Rate is how many rows a second have become done or failed in the last minute.
	Rate float64
	// Next is the time until a row is available, 0 if one is; negative: none will be,
	// or it is not known.
	Next time.Duration
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
	return slices.DeleteFunc(slices.Clone(o.Workers), func(w model.Worker) bool { return !w.IsThere(o.Now) })
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
	// openBudget is how long the rows that are held or wait may be counted. The index
	// entries of rows finished lately stand among theirs: those of a lease's time, or,
	// while somebody holds an old snapshot, all since then.
	openBudget = 200 * time.Millisecond
	// freshBudget is how long it may take to see whether a row is fresh.
	freshBudget = 200 * time.Millisecond
	// sampled is how many ids an estimate is made of, and sampleChunk how many of them
	// are looked at before the time is: each is a page that may have to come from disk.
	sampled, sampleChunk = 4000, 100
	sampleBudget         = 150 * time.Millisecond
	// tolerance times the sample's own error, at most, is how much the tallies may
	// differ from a sample and still be believed rather than it.
	tolerance = 4
)

// overviewFacts are what an overview is put together from.
type overviewFacts struct {
	Now, Until  time.Time // PostgreSQL's clock, and the end of the longest lease that begins now
	First, Last *int64    // ids
	Total       int64     // rows that came by loads, corrected
	IDs         int64     `gorm:"column:ids"` // that those take up at most
	Done        int64
	Failed      int64
	Lately      int64 // done or failed in the last minute

	open     Counts        // in flight, expired, waiting, and come due again (fresh)
	lacking  []model.State // those that open has not all of: too many to be counted in time
	next     time.Duration // until the first of those in flight or waiting is available; 0: not known
	due      time.Duration // OldestDue
	anyFresh *bool         // whether a row was never held or put back; nil: not known
}

// lacks notes that not all rows of some states could be counted.
func (f *overviewFacts) lacks(states ...model.State) { f.lacking = append(f.lacking, states...) }

// count adds what was counted of the rows that are held or wait.
func (f *overviewFacts) count(rows []openCount) {
	for _, row := range rows {
		f.open[row.State] += row.N
		if next := fromSeconds(row.Next); next > 0 && (f.next == 0 || next < f.next) {
			f.next = next
		}
	}
}

func noneOpen() Counts { return Counts{model.InFlight: 0, model.Waiting: 0, model.Expired: 0} }

type openCount struct {
	State model.State
	N     int64
	Next  float64 // in how many seconds the first of them is available
}

func fromSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

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
	defer func() { o.Next = o.untilNext(facts) }()
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
	if possible && facts.explained() && len(facts.lacking) == 0 {
		o.Counts = counts
		return o, nil
	}
	err = o.estimate(ctx, s, facts)
	return o, err
}

// untilNext is how long it takes until a row is available; negative: not known.
func (o *Overview) untilNext(facts *overviewFacts) time.Duration {
	switch {
	case o.Counts[model.Fresh]+o.Counts[model.Expired] > 0:
		return 0
	case facts.next == 0, len(facts.lacking) > 0: // an earlier one may not have been counted
		return -1
	}
	return facts.next
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

// estimate takes the states of some random ids for those of all, where nothing
// better is known.
func (o *Overview) estimate(ctx context.Context, s overviewer, facts *overviewFacts) error {
	found, off, err := sampleOf(ctx, s, facts)
	if err != nil {
		return err
	}
	o.Counts, o.Estimated = found, []model.State{model.Fresh}
	o.guessOpen(facts)
	tallied, possible := facts.counts()
	o.TotalEstimated = !possible || !facts.explained()
	if possible && (facts.explained() || within(tallied, found, off)) {
		o.Counts = tallied
		return nil
	}
	o.Estimated = append(o.Estimated, model.Done, model.Failed)
	if o.Counts[model.Failed] == 0 {
		o.Counts[model.Failed] = max(facts.Failed, 0) // too few for a sample
	}
	return nil
}

// sampleOf takes the states of random ids for those of all, and says by how much it
// may be off.
func sampleOf(ctx context.Context, s overviewer, facts *overviewFacts) (found Counts, off int64, err error) {
	began := time.Now()
	hits, n := Counts{}, 0
	for n < sampled && (n == 0 || time.Since(began) < sampleBudget) {
		ids := make([]int64, sampleChunk)
		for i := range ids {
			ids[i] = *facts.First + rand.Int64N(facts.span())
		}
		slices.Sort(ids)
		ids = slices.Compact(ids)
		chunk, err := s.sampleStates(ctx, ids)
		if err != nil {
			return nil, 0, err
		}
		for state, k := range chunk {
			hits[state] += k
		}
		n += len(ids)
	}
	span := float64(facts.span())
	for state, k := range hits {
		hits[state] = int64(float64(k) / float64(n) * span)
	}
	return hits, int64(tolerance * span / (2 * math.Sqrt(float64(n)))), nil
}

// guessOpen completes what could be counted of the rows that are held or wait: by the
// sample, and by what the workers say that they hold.
func (o *Overview) guessOpen(facts *overviewFacts) {
	o.Estimated = append(o.Estimated, facts.lacking...)
	for _, state := range facts.lacking {
		guess := o.Counts[state]
		if state == model.InFlight {
			guess = 0
			for _, w := range o.Live() {
				guess += int64(w.InFlight)
			}
		}
		facts.open[state] = max(facts.open[state], guess)
	}
	for _, state := range []model.State{model.InFlight, model.Waiting, model.Expired} {
		o.Counts[state] = facts.open[state]
	}
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
