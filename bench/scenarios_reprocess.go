package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/job"
)

// reprocessing puts processed rows back while a fleet works others: how much of its
// speed does that leave to the fleet? In turns: of two runs, one after the other, the
// machine's own moods would be compared too.
func reprocessing(b *Bench) []plan {
	p := b.windrow("rows are put back, in turns", Parameters{Rows: 1_000_000, Processes: 4, Seconds: 60})
	p.endless = true // what is put back is not finished
	p.fill = func(context.Context) error { return nil }
	back := &puttingBack{turn: min(longestTurn, time.Duration(p.Parameters.Seconds*float64(time.Second))/5)}
	p.meanwhile = func(ctx context.Context, _ *fleet) error { return back.run(ctx, b.target) }
	p.figures = func(_ context.Context, r *Result, t *tally) { back.into(r, t) }
	p.measure = func(ctx context.Context, p plan, _ int64) (Result, error) {
		first, err := b.target.fillHalf(ctx, p.Parameters)
		if err != nil {
			return p.Result, err
		}
		p.measure = nil
		return b.run(ctx, p, first)
	}
	return []plan{p}
}

// longestTurn is how long rows are put back, and then not.
const longestTurn = 5 * time.Second

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

// puttingBack is a reprocess beside a fleet: in every second turn.
type puttingBack struct {
	turn   time.Duration
	began  time.Time
	rows   int64
	memory uint64
}

func (b *puttingBack) run(ctx context.Context, t *target) error {
	store, err := checkout.OpenPostgres(ctx, t.address, checkout.Options{Schema: t.schema})
	if err != nil {
		return err
	}
	defer store.Close()
	*b = puttingBack{turn: b.turn, began: time.Now()}
	if err := b.await(ctx); err != nil {
		return nil
	}
	pace := &job.Pace{Workers: store.Workers}
	_, err = store.Reprocess(ctx, checkout.Selection{All: true}, checkout.ReprocessOptions{By: "bench",
		Progress: func(took time.Duration, done checkout.Reprocessed, _, _ int64) error {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			b.rows, b.memory = done.PutBack+done.Deferred, max(b.memory, m.HeapInuse)
			if err := pace.Rest(ctx, took); err != nil {
				return err
			}
			return b.await(ctx)
		}})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// await waits for the next turn in which rows are put back: each second one.
func (b *puttingBack) await(ctx context.Context) error {
	since := time.Since(b.began)
	if since/b.turn%2 == 1 {
		return ctx.Err()
	}
	select {
	case <-time.After(b.turn - since%b.turn):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// into compares each turn in which rows were put back with the mean of its neighbours.
func (b *puttingBack) into(r *Result, t *tally) {
	var rates []float64
	for at := b.began; !at.Add(b.turn).After(t.end); at = at.Add(b.turn) {
		rates = append(rates, t.between(at, at.Add(b.turn)))
	}
	var shares []float64
	for i := 1; i+1 < len(rates); i += 2 {
		shares = append(shares, 2*rates[i]/max(rates[i-1]+rates[i+1], 1))
	}
	r.Figures = map[string]float64{
		"put_back_rows":            float64(b.rows),
		"put_back_rows_per_second": float64(b.rows) / max(b.turn.Seconds()*float64(len(rates)/2), 0.001),
		"put_back_heap_megabytes":  float64(b.memory >> 20),
	}
	if len(shares) > 0 {
		slices.Sort(shares)
		r.Figures["speed_beside"] = shares[len(shares)/2]
		r.Figures["speed_beside_least"] = shares[0]
	}
}
