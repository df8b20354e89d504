package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// plan is one run that a scenario asks for.
type plan struct {
	Result                                                       // scenario, subject, case, parameters
	tasks     func(p Parameters, first int64) []task             // given the id of the first row
	fill      func(ctx context.Context) error                    // nil: rows fresh rows
	measure   func(context.Context, plan, int64) (Result, error) // nil: by a fleet
	prepare   func(ctx context.Context) error                    // after filling
	meanwhile func(context.Context, *fleet) error                // while the fleet works
	figures   func(context.Context, *Result, *tally)             // adds the scenario's own
	retries   int                                                // tries that each row may need more
	endless   bool                                               // rows are put back again and again
	crashes   bool                                               // workers are killed: losses are no fault
}

// tally is what all workers of a run have reported, put together.
type tally struct {
	reports   []*report
	checkOuts []int32 // microseconds, sorted
	slices    []slice // in order of time
	first     time.Time
	end       time.Time // of the slice of the last check-in
	total     int64
}

type slice struct {
	at   time.Time // its end
	rows int64
}

func tallyOf(workers []*process) *tally {
	t := &tally{}
	rows := map[int64]int64{}
	for _, p := range workers {
		r := p.report
		if r == nil {
			continue
		}
		t.reports = append(t.reports, r)
		t.checkOuts = append(t.checkOuts, r.CheckOuts...)
		for at, n := range r.Slices {
			rows[at] += n
			t.total += n
		}
		if !r.First.IsZero() && (t.first.IsZero() || r.First.Before(t.first)) {
			t.first = r.First
		}
	}
	slices.Sort(t.checkOuts)
	for _, at := range slices.Sorted(maps.Keys(rows)) {
		t.slices = append(t.slices, slice{at: time.Unix(0, (at+1)*int64(sliceTime)), rows: rows[at]})
	}
	if len(t.slices) > 0 {
		t.end = t.slices[len(t.slices)-1].at
	}
	return t
}

// when is the time from the first check-out until a share of all rows was done.
func (t *tally) when(share float64) time.Duration {
	var rows int64
	for _, s := range t.slices {
		if rows += s.rows; float64(rows) >= share*float64(t.total) {
			return s.at.Sub(t.first)
		}
	}
	return t.end.Sub(t.first)
}

// rate is rows per second between two shares of all rows.
func (t *tally) rate(from, to float64) float64 {
	took := t.when(to)
	if from > 0 {
		took -= t.when(from)
	}
	return (to - from) * float64(t.total) / max(took.Seconds(), sliceTime.Seconds())
}

// between is rows per second in an interval of the clock.
func (t *tally) between(from, to time.Time) float64 {
	var rows int64
	for _, s := range t.slices {
		if s.at.After(from) && !s.at.After(to) {
			rows += s.rows
		}
	}
	return float64(rows) / to.Sub(from).Seconds()
}

func (t *tally) perSecond() []int64 {
	if t.total == 0 {
		return nil
	}
	counts := make([]int64, int(t.end.Sub(t.first).Seconds())+1)
	for _, s := range t.slices {
		counts[min(int(s.at.Sub(t.first).Seconds()), len(counts)-1)] += s.rows
	}
	return counts
}

// percentile is in milliseconds.
func (t *tally) percentile(share float64) float64 {
	if len(t.checkOuts) == 0 {
		return 0
	}
	i := min(int(share*float64(len(t.checkOuts))), len(t.checkOuts)-1)
	return float64(t.checkOuts[i]) / 1000
}

// fillIn puts what the workers reported into the result.
func (t *tally) fillIn(r *Result) {
	r.Seconds = t.end.Sub(t.first).Seconds()
	r.Done = t.total
	r.RowsPerSecond = t.rate(0, 1)
	r.FirstQuarter = t.rate(0, 0.25)
	r.LastQuarter = t.rate(0.75, 1)
	r.PerSecond = t.perSecond()
	r.CheckOutP50, r.CheckOutP95, r.CheckOutP99 = t.percentile(0.5), t.percentile(0.95), t.percentile(0.99)
	r.CheckOuts = int64(len(t.checkOuts))
	r.Conflicts = map[string]int64{}
	var conflicts int64
	for _, w := range t.reports {
		r.EmptyCheckOuts += w.Empty
		r.Lost += w.Lost
		for reason, n := range w.Conflicts {
			r.Conflicts[reason] += n
			conflicts += n
		}
	}
	r.ConflictsPerCheckOut = float64(conflicts) / float64(max(r.CheckOuts, 1))
}

// run carries a plan out on the table that was filled for it.
func (b *Bench) run(ctx context.Context, p plan, first int64) (Result, error) {
	r := p.Result
	r.Machine, r.Began = ThisMachine(), time.Now().UTC()
	var err error
	if r.Server, err = b.target.server(ctx); err != nil {
		return r, err
	}
	if p.prepare != nil {
		if err := p.prepare(ctx); err != nil {
			return r, err
		}
	}
	f, err := startFleet(ctx, p.tasks(p.Parameters, first))
	if err != nil {
		return r, err
	}
	before, err := b.target.usage(ctx)
	if err != nil {
		return r, err
	}
	total := int64(r.Parameters.Rows)
	if p.endless {
		total = 0 // rows don't tell how far it is
	}
	stop := b.progress(fmt.Sprintf("%s %s %s", r.Scenario, r.Subject, r.Case), total, f.finished)
	err = f.run(ctx, func(ctx context.Context) error {
		if p.meanwhile == nil {
			return nil
		}
		return p.meanwhile(ctx, f)
	})
	stop()
	if err != nil {
		return r, err
	}
	t := tallyOf(f.workers)
	t.fillIn(&r)
	cpu, memory := f.usage()
	r.ClientMemory = memory
	r.ClientMicros = float64(cpu.Microseconds()) / float64(max(r.Done, 1))
	if err := b.account(ctx, &r, before); err != nil {
		return r, err
	}
	if p.figures != nil {
		p.figures(ctx, &r, t)
	}
	return r, b.verify(ctx, &r, p)
}

// usage is what the server has used so far.
type usage struct {
	cpu time.Duration
	lsn string
}

func (t *target) usage(ctx context.Context) (usage, error) {
	var u usage
	u.cpu = t.cpu()
	err := t.db.WithContext(ctx).Raw(`SELECT CAST(pg_current_wal_lsn() AS text)`).Scan(&u.lsn).Error
	return u, err
}

// account notes what the run has cost the server.
func (b *Bench) account(ctx context.Context, r *Result, before usage) error {
	rows := float64(max(r.Done, 1))
	r.ServerMicros = float64((b.target.cpu() - before.cpu).Microseconds()) / rows
	var wal float64
	err := b.target.db.WithContext(ctx).Raw(`SELECT CAST(pg_current_wal_lsn() - CAST(? AS pg_lsn) AS double precision)`, before.lsn).Scan(&wal).Error
	if err != nil {
		return err
	}
	r.WALBytesPerRow = wal / rows
	return b.target.db.WithContext(ctx).Raw(`SELECT coalesce(sum(n_dead_tup), 0) FROM pg_stat_user_tables WHERE schemaname = ? AND relname = 'datasets'`,
		b.target.schema).Scan(&r.DeadTuples).Error
}

// Unsound says that a run lost rows, or handed some out twice: its other figures
// are worth nothing.
type Unsound struct{ Result Result }

func (u *Unsound) Error() string {
	return fmt.Sprintf("%s, %s %s: %d rows lost, %d doubled", u.Result.Scenario, u.Result.Subject, u.Result.Case, u.Result.Lost, u.Result.Doubled)
}

// verify looks at the table: every row that was to be finished is, by one try, or
// by as many as the scenario makes it need.
func (b *Bench) verify(ctx context.Context, r *Result, p plan) error {
	var found struct{ Finished, Without, Doubled int64 }
	losses := `OR d.losses > 0`
	if p.crashes {
		losses = ``
	}
	err := b.target.db.WithContext(ctx).Raw(fmt.Sprintf(`
		SELECT
			count(*) FILTER (WHERE d.is_processed) AS finished,
			count(*) FILTER (WHERE d.is_processed AND (d.result IS NULL OR d.error IS NOT NULL)) AS without,
			count(*) FILTER (WHERE d.is_processed AND (d.attempts - d.losses NOT BETWEEN 1 AND %d %s)) AS doubled
		FROM %s AS d`, 1+p.retries, losses, b.target.table())).Scan(&found).Error
	if err != nil {
		return err
	}
	missing := int64(r.Parameters.Rows) - found.Finished
	switch {
	case p.endless:
		missing = 0
	case r.Parameters.Seconds > 0:
		missing = max(0, r.Done-found.Finished) // what was said to be stored and is not
	}
	r.Lost += missing + found.Without
	r.Doubled = found.Doubled
	if r.Lost+r.Doubled > 0 {
		return &Unsound{Result: *r}
	}
	return nil
}
