package bench_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
	"github.com/windrow-go/windrow/model"
	"github.com/windrow-go/windrow/processor"
)

var (
	rows      = flag.Int("rows", 20_000, "rows in the table")
	processes = flag.Int("processes", 2, "worker processes")
	slots     = flag.Int("slots", 4, "slots in each")
	payload   = flag.Int("payload", 170, "bytes of padding in each row's data")
	maxBatch  = flag.Int("max-batch", 0, "most rows of one check-out; 0 for the default")
)

// workerVariable makes this binary a worker of the fleet: it holds the address.
const workerVariable = "WINDROW_BENCH_WORKER"

func TestMain(m *testing.M) {
	flag.Parse()
	if url := os.Getenv(workerVariable); url != "" {
		os.Exit(work(url))
	}
	os.Exit(pgtest.Run(m))
}

// report is what a worker prints when it is done.
type report struct {
	Done, Claimed, Lost int64
	Conflicts           map[string]int64
}

// work drains the table with a handler that does nothing.
func work(url string) int {
	debug.SetGCPercent(400) // as cmd/windrow does
	r := report{Conflicts: map[string]int64{}}
	var mu sync.Mutex
	opts := checkout.Options{OnConflict: func(op, reason string) {
		mu.Lock()
		defer mu.Unlock()
		r.Conflicts[op+": "+reason]++
	}}
	store, err := checkout.OpenPostgres(context.Background(), url, opts)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer store.Close()
	noop := func(context.Context, model.Dataset) (any, error) { return json.RawMessage(`{"ok": true}`), nil }
	p := processor.New(store, processor.HandlerFunc(noop), processor.Options{
		Concurrency: *slots, MaxBatch: *maxBatch, UntilEmpty: true})
	err = p.Run(context.Background())
	stats := p.Stats()
	r.Done, r.Claimed, r.Lost = stats.Done, stats.Claimed, stats.Lost
	if encoding := json.NewEncoder(os.Stdout).Encode(r); err == nil {
		err = encoding
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
