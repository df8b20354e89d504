package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/windrow-go/windrow/processor"
)

// workerVariable makes the program that runs the bench a worker of its fleet.
const workerVariable = "WINDROW_BENCH_WORKER"

// IsWorker tells whether this process was started as a worker of a fleet; it then
// calls [Work] and nothing else.
func IsWorker() bool { return os.Getenv(workerVariable) != "" }

// Subjects that a worker can be.
const (
	subjectWindrow    = "windrow"
	subjectLimit      = "limit"
	subjectSkipLocked = "skip-locked"
	subjectNaive      = "naive"
	subjectSQLite     = "windrow on SQLite"
	subjectBareSQLite = "bare SQLite loop"
)

// task is what a worker is told on its standard input: not in its arguments or its
// environment, because the address may hold a password.
type task struct {
	Subject     string
	Address     string
	Schema      string
	Concurrency int
	Batch       int           // 0: automatic
	Lease       time.Duration // 0: the default
	Holder      string        // "": as it comes
	Handling    time.Duration // what the handler takes for a row
	FailEvery   int           // every n-th row fails at its first try; 0: none
	RetryMin    time.Duration
	From, To    int64         // the ids of a limit worker
	Limit       time.Duration // 0: until nothing is left
}

// message is a line of a worker's standard output; one of its fields is set.
type message struct {
	Ready  bool    `json:",omitempty"` // connected, and waiting for a line to start
	Done   int64   `json:",omitempty"` // rows finished so far
	Report *report `json:",omitempty"` // the last line
}

const sayEvery = 500 * time.Millisecond

// Work is a worker's life: it reads its task, waits for the signal to start, works
// until nothing is left, and reports. It returns the exit code.
func Work(in io.Reader, out, errs io.Writer) int {
	if err := work(context.Background(), bufio.NewReader(in), json.NewEncoder(out)); err != nil {
		fmt.Fprintln(errs, "bench worker:", err)
		return 1
	}
	return 0
}

func work(ctx context.Context, in *bufio.Reader, out *json.Encoder) error {
	var t task
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	if err := json.Unmarshal(line, &t); err != nil {
		return err
	}
	rec := newRecorder()
	run, err := prepare(ctx, t, rec)
	if err != nil {
		return err
	}
	if err := out.Encode(message{Ready: true}); err != nil {
		return err
	}
	if _, err := in.ReadBytes('\n'); err != nil {
		return err
	}
	if t.Limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, t.Limit)
		defer cancel()
	}
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	tick := time.NewTicker(sayEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := out.Encode(message{Done: max(rec.done.Load(), 1)}); err != nil {
				return err // nobody listens any more
			}
		case err := <-ended:
			if err != nil && !(t.Limit > 0 && errors.Is(err, context.DeadlineExceeded)) {
				return err
			}
			return out.Encode(message{Report: rec.report()})
		}
	}
}

// prepare connects, so that this is not measured.
func prepare(ctx context.Context, t task, rec *recorder) (run func(context.Context) error, err error) {
	switch t.Subject {
	case subjectWindrow, subjectSQLite:
		return prepareWindrow(ctx, t, rec)
	case subjectLimit:
		return prepareLimit(ctx, t, rec)
	case subjectSkipLocked:
		return prepareSkipLocked(ctx, t, rec)
	case subjectNaive:
		return prepareNaive(ctx, t, rec)
	case subjectBareSQLite:
		return prepareBareSQLite(ctx, t, rec)
	}
	return nil, fmt.Errorf("unknown subject %q", t.Subject)
}

// prepareWindrow makes the product's whole path: store, processor, handler.
func prepareWindrow(ctx context.Context, t task, rec *recorder) (func(context.Context) error, error) {
	store, closeStore, err := openStore(ctx, t, rec)
	if err != nil {
		return nil, err
	}
	p := processor.New(&watched{Store: store, rec: rec}, handlerOf(t), processor.Options{
		Concurrency: t.Concurrency,
		MaxBatch:    t.Batch,
		Lease:       t.Lease,
		Holder:      t.Holder,
		RetryMin:    t.RetryMin,
		UntilEmpty:  t.Limit == 0,
	})
	return func(ctx context.Context) error {
		err := p.Run(ctx)
		stats := p.Stats()
		rec.lost.Store(stats.Lost)
		rec.handling.Store(int64(stats.HandlerTime))
		return errors.Join(err, closeStore())
	}, nil
}
