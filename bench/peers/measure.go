package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/windrow-go/windrow/bench"
)

// enqueueBatch is how many jobs are added in one transaction.
const enqueueBatch = 5_000

// measure does one run on a database of its own: fill, work, count.
func measure(ctx context.Context, p peer, plan bench.Parameters, s setting, stderr io.Writer) (_ bench.Result, err error) {
	db, err := newDatabase(ctx, p.engine, s)
	if err != nil {
		return bench.Result{}, err
	}
	defer func() { err = errors.Join(err, db.remove()) }()
	q, err := p.open(ctx, db.address())
	if err != nil {
		return bench.Result{}, err
	}
	defer func() { err = errors.Join(err, q.close()) }()
	fmt.Fprintf(stderr, "%s: enqueueing %d jobs\n", p.name, plan.Rows)
	if err := fill(ctx, q, plan); err != nil {
		return bench.Result{}, err
	}
	if err := db.settle(ctx); err != nil {
		return bench.Result{}, err
	}
	fmt.Fprintf(stderr, "%s: working them with %d x %d workers\n", p.name, plan.Processes, plan.Concurrency)
	result, err := drain(ctx, p, plan, db, q, stderr)
	if err != nil {
		return bench.Result{}, err
	}
	fmt.Fprintf(stderr, "%s: %d jobs in %.1f s: %.0f a second\n", p.name, result.Done, result.Seconds, result.RowsPerSecond)
	return result, nil
}

func fill(ctx context.Context, q queue, plan bench.Parameters) error {
	if err := q.install(ctx); err != nil {
		return fmt.Errorf("make the tables: %w", err)
	}
	for from := 0; from < plan.Rows; from += enqueueBatch {
		jobs := newJobs(from, min(from+enqueueBatch, plan.Rows), plan.Payload)
		if err := q.enqueue(ctx, jobs); err != nil {
			return fmt.Errorf("enqueue: %w", err)
		}
	}
	return nil
}

// drain is what is measured.
func drain(ctx context.Context, p peer, plan bench.Parameters, db database, q queue, stderr io.Writer) (bench.Result, error) {
	server, err := db.describe(ctx)
	if err != nil {
		return bench.Result{}, err
	}
	t := task{Peer: p.name, Address: db.address(), Workers: plan.Concurrency, Rows: plan.Rows}
	workers, err := startFleet(ctx, t, plan.Processes, stderr)
	if err != nil {
		return bench.Result{}, err
	}
	defer workers.kill()
	before, err := db.spent(ctx)
	if err != nil {
		return bench.Result{}, err
	}
	began := time.Now()
	if err := workers.begin(); err != nil {
		return bench.Result{}, err
	}
	looks, costs, err := watch(ctx, began, int64(plan.Rows), q.left)
	if err != nil {
		return bench.Result{}, err
	}
	after, err := db.spent(ctx)
	if err != nil {
		return bench.Result{}, err
	}
	reports, err := workers.stop()
	if err != nil {
		return bench.Result{}, err
	}
	result := newResult(p, plan, looks)
	if server.Settings["synchronous"] == synchronousFull {
		result.Case = strings.TrimPrefix(result.Case+", synchronous=FULL", ", ")
	}
	result.Server, result.Began = server, began.UTC()
	result.Figures = map[string]float64{"looking_seconds": costs.Seconds()}
	addCosts(&result, reports, before, after)
	return result, addTally(ctx, &result, q, reports)
}

func newResult(p peer, plan bench.Parameters, looks []look) bench.Result {
	last := looks[len(looks)-1]
	r := bench.Result{
		Scenario:     "throughput",
		Subject:      p.subject,
		Case:         caseOf(plan),
		Parameters:   plan,
		Machine:      bench.ThisMachine(),
		Seconds:      last.after.Seconds(),
		Done:         last.done,
		FirstQuarter: pace(looks, 0, 0.25),
		LastQuarter:  pace(looks, 0.75, 1),
		PerSecond:    perSecond(looks),
	}
	if p.engine == engineSQLite {
		r.Scenario = "sqlite"
	}
	if r.Seconds > 0 {
		r.RowsPerSecond = float64(r.Done) / r.Seconds
	}
	return r
}

func addCosts(r *bench.Result, reports []report, before, after spending) {
	rows := float64(max(r.Done, 1))
	r.WALBytesPerRow = float64(after.wal-before.wal) / rows
	r.ServerMicros = float64((after.cpu - before.cpu).Microseconds()) / rows
	var used time.Duration
	for _, one := range reports {
		used += one.CPU
		r.ClientMemory = max(r.ClientMemory, one.Memory)
	}
	r.ClientMicros = float64(used.Microseconds()) / rows
}

// addTally says whether each job was worked, once: as handlers saw it and as the
// database shows it.
func addTally(ctx context.Context, r *bench.Result, q queue, reports []report) error {
	rows := int64(r.Parameters.Rows)
	once := rows
	if k, ok := q.(keeper); ok {
		var err error
		if once, err = k.once(ctx); err != nil {
			return err
		}
	}
	var never int64
	for number := range rows {
		var times int64
		for _, one := range reports {
			times += int64(one.Times[number])
		}
		if times == 0 {
			never++
		}
		r.Doubled += max(times-1, 0)
	}
	r.Lost = max(rows-r.Done, never, rows-once)
	return nil
}

// caseOf names only a fleet of another shape than the peer's best, as windrow's own
// results do.
func caseOf(p bench.Parameters) string {
	if p.Processes == 1 {
		return ""
	}
	return fmt.Sprintf("%d x %d", p.Processes, p.Concurrency)
}
