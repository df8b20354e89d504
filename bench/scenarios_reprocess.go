package bench

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/job"
)

// reprocessing puts processed rows back while a fleet works others: how much of its
// speed does that leave to the fleet?
func reprocessing(b *Bench) []plan {
	own := Parameters{Rows: 1_000_000, Processes: 4, Seconds: 40}
	plans := []plan{b.windrow("nothing is put back", own), b.windrow("rows are put back", own)}
	for i := range plans {
		p := &plans[i]
		p.endless = true // what is put back is not finished
		p.fill = func(context.Context) error { return nil }
		p.measure = func(ctx context.Context, p plan, _ int64) (Result, error) {
			first, err := b.target.fillHalf(ctx, p.Parameters)
			if err != nil {
				return p.Result, err
			}
			p.measure = nil
			return b.run(ctx, p, first)
		}
	}
	back := &puttingBack{}
	plans[1].meanwhile = func(ctx context.Context, _ *fleet) error { return back.run(ctx, b.target) }
	plans[1].figures = func(_ context.Context, r *Result, _ *tally) { back.into(r) }
	return plans
}

// freshPerSecond is how many rows there must be to work, so that they last.
const freshPerSecond = 50_000

// fillHalf makes a table of processed rows and, behind these, enough fresh ones for the
// time that the run takes.
func (t *target) fillHalf(ctx context.Context, p Parameters) (first int64, err error) {
	first, err = t.fill(ctx, p.Rows+int(p.Seconds*freshPerSecond), p.Payload)
	if err != nil {
		return 0, err
	}
	for _, statement := range []string{
		fmt.Sprintf(`UPDATE %s SET is_processed = true, result = '1', processed_at = clock_timestamp(), last_checkout = clock_timestamp(),
			checkouts = 1, attempts = 1, checked_out_by = 'bench' WHERE id < %d`, t.table(), first+int64(p.Rows)),
		`VACUUM (ANALYZE) ` + t.table(),
		`CHECKPOINT`,
	} {
		if err := t.exec(ctx, statement); err != nil {
			return 0, err
		}
	}
	return first, nil
}

// puttingBack is a reprocess beside a fleet.
type puttingBack struct {
	rows   int64
	took   time.Duration
	memory uint64
}

func (b *puttingBack) run(ctx context.Context, t *target) error {
	store, err := checkout.OpenPostgres(ctx, t.address, checkout.Options{Schema: t.schema})
	if err != nil {
		return err
	}
	defer store.Close()
	*b = puttingBack{}
	began := time.Now()
	pace := &job.Pace{Workers: store.Workers}
	_, err = store.Reprocess(ctx, checkout.Selection{All: true}, checkout.ReprocessOptions{By: "bench",
		Progress: func(took time.Duration, done checkout.Reprocessed, _, _ int64) error {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			b.rows, b.took, b.memory = done.PutBack+done.Deferred, time.Since(began), max(b.memory, m.HeapInuse)
			return pace.Rest(ctx, took)
		}})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (b *puttingBack) into(r *Result) {
	r.Figures = map[string]float64{
		"put_back_rows":            float64(b.rows),
		"put_back_rows_per_second": float64(b.rows) / max(b.took.Seconds(), 0.001),
		"put_back_heap_megabytes":  float64(b.memory >> 20),
	}
}
