package bench

import (
	"context"
	"fmt"
	"time"
)

// scenario is one question that the bench answers.
type scenario struct {
	name, about string
	plans       func(b *Bench) []plan
	embedded    bool // no server is needed
}

// scenarios, in the order in which they are explained.
func scenarios() []scenario {
	return []scenario{
		{name: "throughput", about: "rows that do nothing, beside three references: limit, skip-locked, naive", plans: throughput},
		{name: "contention", about: "2, 8, 40 and 120 processes, batches of 1 and automatic", plans: contention},
		{name: "scale", about: "100 thousand, 1 million and 10 million rows", plans: scale},
		{name: "drain", about: "a large fleet to the very last row", plans: drain},
		{name: "snapshot", about: "throughput and drain with and without an old snapshot held by somebody", plans: snapshot},
		{name: "retries", about: "a tenth of the rows fails at first and waits; all come due at once; rows far apart", plans: retries},
		{name: "work", about: "rows that take 1 ms, 100 ms, 5 s: are the slots busy?", plans: workTimes},
		{name: "wide", about: "rows of 2 kB and 20 kB", plans: wide},
		{name: "load", about: "loading each format, beside \\copy", plans: loads},
		{name: "sqlite", about: "the embedded store, beside a bare loop on one connection", plans: sqlite, embedded: true},
		{name: "crash", about: "processes are killed amid throughput", plans: crash},
		{name: "reprocess", about: "rows are put back while others are worked: how fast does the fleet stay?", plans: reprocessing},
		{name: "growth", about: "the same rows again and again, for half an hour: does anything grow?", plans: growth},
	}
}

func find(name string) (scenario, bool) {
	for _, s := range scenarios() {
		if s.name == name {
			return s, true
		}
	}
	return scenario{}, false
}

// Names lists the scenarios.
func Names() []string {
	var names []string
	for _, s := range scenarios() {
		names = append(names, s.name)
	}
	return names
}

// About is what a scenario measures, in a line.
func About(name string) string {
	s, _ := find(name)
	return s.about
}

// windrow plans a run of the product's whole path.
func (b *Bench) windrow(label string, own Parameters) plan {
	p := plan{Result: Result{Subject: subjectWindrow, Case: label, Parameters: b.parameters(own)}}
	p.tasks = b.same(task{Subject: subjectWindrow})
	return p
}

// same gives every process the same task.
func (b *Bench) same(t task) func(Parameters, int64) []task {
	return func(params Parameters, _ int64) []task {
		t.Batch = params.Batch
		t.Address, t.Schema = b.target.address, b.target.schema
		t.Concurrency = params.Concurrency
		t.Limit = time.Duration(params.Seconds * float64(time.Second))
		tasks := make([]task, params.Processes)
		for i := range tasks {
			tasks[i] = t
		}
		return tasks
	}
}

// reference plans a run of one of the plain loops, one to a process.
func (b *Bench) reference(subject, label string, own Parameters) plan {
	p := plan{Result: Result{Subject: subject, Case: label, Parameters: b.parameters(own)}}
	p.Parameters.Concurrency = 1
	p.tasks = func(params Parameters, first int64) []task {
		tasks := b.same(task{Subject: subject})(params, first)
		for i := range tasks { // only limit looks at these
			tasks[i].From = first + int64(params.Rows)*int64(i)/int64(len(tasks))
			tasks[i].To = first + int64(params.Rows)*int64(i+1)/int64(len(tasks))
		}
		return tasks
	}
	return p
}

// throughput has so many rows that the first seconds, in which each of the server's
// processes maps its memory, count for little.
func throughput(b *Bench) []plan {
	own := Parameters{Rows: 1_000_000, Processes: 8}
	batches := func(n int) Parameters { p := own; p.Batch = n; return p }
	naive := b.reference(subjectNaive, "", batches(1))
	if naive.Parameters.Seconds == 0 {
		naive.Parameters.Seconds = 10 // it would take half an hour
	}
	shape := b.shape()
	naive.Case = shape
	return []plan{
		b.windrow(shape, own),
		b.reference(subjectLimit, shape, batches(500)),
		b.reference(subjectSkipLocked, shape, batches(100)),
		naive,
	}
}

// shape names a fleet of another shape than the scenario's own.
func (b *Bench) shape() string {
	if b.opts.Processes == 0 && b.opts.Concurrency == 0 {
		return ""
	}
	p := b.parameters(Parameters{Processes: 8})
	return fmt.Sprintf("%d x %d", p.Processes, p.Concurrency)
}

func contention(b *Bench) []plan {
	var plans []plan
	for _, processes := range typed(b.opts.Processes, 2, 8, 40, 120) {
		for _, batch := range typed(b.opts.Batch, 1, 0) {
			own := Parameters{Rows: 1_000_000, Processes: processes, Concurrency: 4}
			label := fmt.Sprintf("%d processes, automatic", processes)
			if batch > 0 {
				own = Parameters{Rows: 40_000, Processes: processes, Concurrency: 1, Batch: batch}
				label = fmt.Sprintf("%d processes, batch %d", processes, batch)
			}
			plans = append(plans, b.windrow(label, own))
		}
	}
	return plans
}

// typed is the value of an option if it was given, else what the scenario varies.
func typed(given int, otherwise ...int) []int {
	if given > 0 {
		return []int{given}
	}
	return otherwise
}

func scale(b *Bench) []plan {
	var plans []plan
	for _, rows := range typed(b.opts.Rows, 100_000, 1_000_000, 10_000_000) {
		plans = append(plans, b.windrow(fmt.Sprintf("%d rows", rows), Parameters{Rows: rows, Processes: 8}))
	}
	return plans
}

// tail says how the end of a table went: how long the last rows took, and how the
// whole compares with the steady rate, that of the rows in the middle.
func tail(_ context.Context, r *Result, t *tally) {
	steady := t.rate(0.25, 0.75)
	r.Figures = map[string]float64{
		"last_1_percent_seconds":  (t.when(1) - t.when(0.99)).Seconds(),
		"last_10_percent_seconds": (t.when(1) - t.when(0.9)).Seconds(),
		"steady_rows_per_second":  steady,
		"time_to_steady_time":     r.Seconds / (float64(r.Done) / steady),
	}
}

func drain(b *Bench) []plan {
	p := b.windrow("", Parameters{Rows: 300_000, Processes: 40, Concurrency: 4})
	p.figures = tail
	return []plan{p}
}

// snapshot makes each run without and with another session that has held a
// snapshot since before the rows were touched.
func snapshot(b *Bench) []plan {
	var plans []plan
	for _, own := range []struct {
		name string
		Parameters
	}{
		{"throughput", Parameters{Rows: 500_000, Processes: 8}},
		{"drain", Parameters{Rows: 300_000, Processes: 40, Concurrency: 4}},
	} {
		without := b.windrow(own.name, own.Parameters)
		without.figures = tail
		with := b.windrow(own.name+", old snapshot held", own.Parameters)
		with.figures = tail
		with.measure = b.withOldSnapshot
		plans = append(plans, without, with)
	}
	return plans
}

func (b *Bench) withOldSnapshot(ctx context.Context, p plan, first int64) (Result, error) {
	tx := b.target.db.WithContext(ctx).Begin()
	if tx.Error != nil {
		return p.Result, tx.Error
	}
	defer tx.Rollback()
	for _, statement := range []string{
		`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ`,
		`SELECT count(*) FROM (SELECT 1 FROM ` + b.target.table() + ` LIMIT 1) AS one`,
	} {
		if err := tx.Exec(statement).Error; err != nil {
			return p.Result, err
		}
	}
	return b.run(ctx, p, first)
}

func wide(b *Bench) []plan {
	var plans []plan
	for _, payload := range typed(b.opts.Payload, 2_000, 20_000) {
		own := Parameters{Rows: 40_000_000 / payload * 5, Processes: 8, Payload: payload}
		label := fmt.Sprintf("%d bytes", payload)
		limit := own
		limit.Batch = 500
		plans = append(plans, b.windrow(label, own), b.reference(subjectLimit, label, limit))
	}
	return plans
}
