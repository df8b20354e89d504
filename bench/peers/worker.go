package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/windrow-go/windrow/bench"
)

// workerVariable makes this program a worker process.
const workerVariable = "WINDROW_PEERS_WORKER"

func isWorker() bool { return os.Getenv(workerVariable) != "" }

// task is the first line of a worker's standard input. The second one lets it
// begin, and the end of the input lets it stop.
type task struct {
	Peer    string
	Address string
	Workers int
	Rows    int
}

// report is the last line of a worker's standard output; before it comes an empty
// one, when it is ready.
type report struct {
	Times  []byte        // how often it was handed each job, by number; at most 255
	CPU    time.Duration // from the begin to the stop
	Memory int64         // the peak, in bytes
}

// work is a worker process's life; it returns the exit code.
func work(in io.Reader, out, errs io.Writer) int {
	if err := workTask(context.Background(), bufio.NewReader(in), out); err != nil {
		fmt.Fprintln(errs, "worker:", err)
		return 1
	}
	return 0
}

func workTask(ctx context.Context, in *bufio.Reader, out io.Writer) error {
	var t task
	if err := readLine(in, &t); err != nil {
		return err
	}
	chosen, err := choose(t.Peer)
	if err != nil {
		return err
	}
	q, err := chosen[0].open(ctx, t.Address)
	if err != nil {
		return err
	}
	defer q.close()
	if err := json.NewEncoder(out).Encode(struct{}{}); err != nil {
		return err
	}
	if err := readLine(in, &struct{}{}); err != nil {
		return err
	}
	r, err := workUntilEnd(ctx, q, t, in)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(r)
}

// workUntilEnd works until its input ends, which it does, too, when the parent dies.
func workUntilEnd(ctx context.Context, q queue, t task, in io.Reader) (report, error) {
	times := make([]atomic.Uint32, t.Rows)
	before := ownProcessorTime()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var used time.Duration
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, in)
		used = ownProcessorTime() - before
		stop()
	}()
	if err := q.work(ctx, t.Workers, func(j job) { times[j.Number].Add(1) }); err != nil {
		return report{}, err
	}
	<-ended
	r := report{Times: make([]byte, t.Rows), CPU: used, Memory: bench.PeakMemory()}
	for i := range times {
		r.Times[i] = byte(min(times[i].Load(), 255))
	}
	return r, nil
}

func readLine(in *bufio.Reader, into any) error {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, into)
}

// ownProcessorTime is what this process has used so far, in user and system mode.
func ownProcessorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
