package bench

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// retries: a tenth fails at first; everything comes due at once; the rows of a
// reprocess --failed, far apart.
func retries(b *Bench) []plan {
	own := Parameters{Rows: 200_000, Processes: 8}
	failing := b.windrow("a tenth fails at first", own)
	failing.tasks = b.same(task{Subject: subjectWindrow, FailEvery: 10, RetryMin: 2 * time.Second})
	failing.retries = 1

	burst := b.windrow("all come due at once", own)
	burst.prepare = func(ctx context.Context) error {
		return b.target.exec(ctx, `UPDATE `+b.target.table()+` SET available_at = clock_timestamp() - interval '1 second' + id * interval '1 microsecond' / 10, attempts = 0`)
	}

	scattered := b.windrow("scattered", Parameters{Rows: 10_000, Processes: 8})
	const apart = 100 // of so many rows one is left
	scattered.measure = func(ctx context.Context, p plan, _ int64) (Result, error) {
		first, err := b.target.fill(ctx, p.Parameters.Rows*apart, p.Parameters.Payload)
		if err != nil {
			return p.Result, err
		}
		err = b.target.exec(ctx, `DELETE FROM `+b.target.table()+` WHERE (id - ?) % ? <> 0`, first, apart)
		if err != nil {
			return p.Result, err
		}
		return b.run(ctx, p, first)
	}
	return []plan{failing, burst, scattered}
}

// workTimes: rows that take a while. The time between check-out and check-in that
// is not spent in a handler is lost to a slot.
func workTimes(b *Bench) []plan {
	var plans []plan
	for _, takes := range []struct {
		row  time.Duration
		rows int
	}{{time.Millisecond, 200_000}, {100 * time.Millisecond, 40_000}, {5 * time.Second, 400}} {
		p := b.windrow(fmt.Sprintf("rows of %v", takes.row), Parameters{Rows: takes.rows, Processes: 4, Concurrency: 25})
		p.tasks = b.same(task{Subject: subjectWindrow, Handling: takes.row})
		held := &heldRows{}
		p.meanwhile = func(ctx context.Context, f *fleet) error { return held.watch(ctx, b.target) }
		p.figures = func(ctx context.Context, r *Result, t *tally) {
			busy(ctx, r, t)
			held.into(r)
		}
		plans = append(plans, p)
	}
	return plans
}

// busy says which share of the slots' time was spent in handlers, and how evenly
// the rows fell to the processes: the least share over the mean.
func busy(_ context.Context, r *Result, t *tally) {
	var handling time.Duration
	least := int64(-1)
	for _, w := range t.reports {
		handling += w.Handling
		if least < 0 || w.Done < least {
			least = w.Done
		}
	}
	slots := float64(r.Parameters.Processes * r.Parameters.Concurrency)
	r.Figures = map[string]float64{
		"slots_busy":          handling.Seconds() / (r.Seconds * slots),
		"least_to_mean_share": float64(least) * float64(len(t.reports)) / float64(max(t.total, 1)),
	}
}

// heldRows looks now and then how many rows are held, waiting ones included.
type heldRows struct{ seen []int64 }

func (h *heldRows) watch(ctx context.Context, t *target) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		var n int64
		err := t.db.WithContext(ctx).Raw(`SELECT count(*) FROM ` + t.table() +
			` WHERE NOT is_processed AND available_at > clock_timestamp()`).Scan(&n).Error
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		h.seen = append(h.seen, n)
	}
}

func (h *heldRows) into(r *Result) {
	if len(h.seen) == 0 {
		return
	}
	slices.Sort(h.seen)
	r.Figures["held_rows_median"] = float64(h.seen[len(h.seen)/2])
	r.Figures["held_rows_most"] = float64(h.seen[len(h.seen)-1])
}

const (
	crashLease = 4 * time.Second
	crashes    = 3
)

// crash kills a process every two leases, and starts no other in its place.
func crash(b *Bench) []plan {
	p := b.windrow("", Parameters{Rows: 400_000, Processes: 6, Concurrency: 4})
	fleetOf := b.same(task{Subject: subjectWindrow, Lease: crashLease, Handling: time.Millisecond})
	p.tasks = func(params Parameters, first int64) []task {
		tasks := fleetOf(params, first)
		for i := range tasks {
			tasks[i].Holder = victim(i)
		}
		return tasks
	}
	p.crashes = true
	p.measure = func(ctx context.Context, p plan, first int64) (Result, error) {
		var k kills
		p.meanwhile = func(ctx context.Context, f *fleet) error { return k.make(ctx, b.target, f) }
		r, err := b.run(ctx, p, first)
		if err != nil {
			return r, err
		}
		return r, k.recovery(ctx, b.target, &r)
	}
	return []plan{p}
}

// victim is the name under which a worker holds rows.
func victim(i int) string { return fmt.Sprintf("bench/%d", i) }

// kills are the workers killed, and the rows that each held.
type kills struct {
	made int
	held []heldAtDeath
}

type heldAtDeath struct {
	ID   int64
	Died time.Time // by the database's clock
}

func (k *kills) make(ctx context.Context, t *target, f *fleet) error {
	pause := crashLease / 2
	for i := range min(crashes, len(f.workers)-1) {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		f.workers[i].killWorker()
		k.made++
		var held []heldAtDeath
		err := t.db.WithContext(ctx).Raw(`SELECT id, clock_timestamp() AS died FROM `+t.table()+
			` WHERE checked_out_by = ? AND NOT is_processed`, victim(i)).Scan(&held).Error
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		k.held = append(k.held, held...)
		pause = 2 * crashLease
	}
	return nil
}

// recovery says how long after their worker's death rows were handed out again, the
// first and the last of them.
func (k *kills) recovery(ctx context.Context, t *target, r *Result) error {
	died := make(map[int64]time.Time, len(k.held))
	for _, h := range k.held {
		died[h.ID] = h.Died
	}
	var again []struct {
		ID           int64
		LastCheckout time.Time
	}
	err := t.db.WithContext(ctx).Raw(`SELECT id, last_checkout FROM ` + t.table() + ` WHERE losses > 0`).Scan(&again).Error
	if err != nil {
		return err
	}
	var back []time.Duration
	for _, row := range again {
		if at, known := died[row.ID]; known {
			back = append(back, row.LastCheckout.Sub(at))
		}
	}
	r.Figures = map[string]float64{
		"workers_killed":             float64(k.made),
		"rows_lost_and_worked_again": float64(len(again)),
		"lease_seconds":              crashLease.Seconds(),
	}
	if len(back) > 0 {
		r.Figures["first_row_back_seconds"] = slices.Min(back).Seconds()
		r.Figures["last_row_back_seconds"] = slices.Max(back).Seconds()
	}
	return nil
}
