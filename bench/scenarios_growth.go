package bench

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/windrow-go/windrow/checkout"
)

// growth works the same rows again and again: does anything grow without end?
func growth(b *Bench) []plan {
	p := b.windrow("", Parameters{Rows: 200_000, Processes: 4, Seconds: 1800})
	sizes := &sizes{}
	p.endless = true
	p.meanwhile = func(ctx context.Context, f *fleet) error {
		return sizes.watch(ctx, b, f, p.Parameters)
	}
	p.figures = func(_ context.Context, r *Result, _ *tally) { sizes.into(r) }
	return []plan{p}
}

// size is how large everything was at some moment, in bytes.
type size struct{ Table, Indexes, Client int64 }

// sizes are taken at equal intervals.
type sizes struct {
	seen   []size
	rounds int
}

const sizesTaken = 20

// watch puts all rows back as soon as they are done, and looks at sizes.
func (s *sizes) watch(ctx context.Context, b *Bench, f *fleet, p Parameters) error {
	store, err := checkout.OpenPostgres(ctx, b.target.address, checkout.Options{Schema: b.target.schema})
	if err != nil {
		return err
	}
	defer store.Close()
	look := time.NewTicker(time.Duration(p.Seconds * float64(time.Second) / sizesTaken))
	defer look.Stop()
	again := time.NewTicker(sayEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
			err = s.take(ctx, b, f)
		case <-again.C:
			if f.finished() >= int64(p.Rows)*int64(s.rounds+1) {
				_, err = store.Reprocess(ctx, checkout.Selection{All: true}, checkout.ReprocessOptions{By: "bench"})
				s.rounds++
			}
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
}

func (s *sizes) take(ctx context.Context, b *Bench, f *fleet) error {
	var now size
	err := b.target.db.WithContext(ctx).Raw(`SELECT pg_table_size(CAST(? AS regclass)) AS table, pg_indexes_size(CAST(? AS regclass)) AS indexes`,
		b.target.table(), b.target.table()).Scan(&now).Error
	if err != nil {
		return err
	}
	for _, p := range f.workers {
		now.Client = max(now.Client, residentMemory(p.cmd.Process.Pid))
	}
	s.seen = append(s.seen, now)
	return nil
}

// residentMemory is 0 where there is no /proc.
func residentMemory(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	pages := strings.Fields(string(text))
	if len(pages) < 2 {
		return 0
	}
	n, _ := strconv.ParseInt(pages[1], 10, 64)
	return n * int64(os.Getpagesize())
}

func (s *sizes) into(r *Result) {
	r.Figures = map[string]float64{"rounds": float64(s.rounds)}
	if len(s.seen) == 0 {
		return
	}
	for name, at := range map[string]int{"quarter": len(s.seen) / 4, "half": len(s.seen) / 2, "end": len(s.seen) - 1} {
		r.Figures["table_megabytes_"+name] = float64(s.seen[at].Table >> 20)
		r.Figures["index_megabytes_"+name] = float64(s.seen[at].Indexes >> 20)
		r.Figures["client_megabytes_"+name] = float64(s.seen[at].Client >> 20)
	}
}
