package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/windrow-go/windrow/bench"
)

func main() {
	if isWorker() {
		os.Exit(work(os.Stdin, os.Stdout, os.Stderr))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// options are what the user asked for; zeros stand for the peer's own numbers.
type options struct {
	peer    string
	rows    int
	payload int
	workers int
	rounds  int
	full    bool
}

// run is the program; it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2
	}
	chosen, err := choose(o.peer)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	if err := measureAll(ctx, chosen, o, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.peer, "peer", "all", "which queue: river, river-small, gue, goqite, backlite or all")
	flags.IntVar(&o.rows, "rows", 0, "jobs of a run; 0 for the peer's own number")
	flags.IntVar(&o.payload, "payload", 200, "bytes of each job's JSON")
	flags.IntVar(&o.workers, "workers", 0, "workers of each process; 0 for the peer's own number")
	flags.IntVar(&o.rounds, "rounds", 1, "how often each run is repeated, each time on a new database")
	flags.BoolVar(&o.full, "full", false, "SQLite: wait for the disk at each commit, as windrow does and these peers by default don't")
	err := flags.Parse(args)
	if err == nil && (flags.NArg() > 0 || o.rows < 0 || o.payload < 0 || o.workers < 0 || o.rounds < 1) {
		err = errors.New("peers: no arguments but flags, and no negative numbers, please")
		fmt.Fprintln(stderr, err)
	}
	return o, err
}

// measureAll prints a line for each run. A run in which jobs were lost or worked
// twice is printed too, and then an error.
func measureAll(ctx context.Context, chosen []peer, o options, stdout, stderr io.Writer) error {
	out := json.NewEncoder(stdout)
	var flaws []error
	for round := 1; round <= o.rounds; round++ {
		for _, p := range chosen {
			result, err := measure(ctx, p, p.plan(o), setting{postgres: bench.Settings, full: o.full}, stderr)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			result.Round = round
			if err := out.Encode(result); err != nil {
				return err
			}
			if result.Lost > 0 || result.Doubled > 0 {
				flaws = append(flaws, fmt.Errorf("%s: %d jobs lost, %d worked once more", p.name, result.Lost, result.Doubled))
			}
		}
	}
	return errors.Join(flaws...)
}

// plan fills in the peer's own numbers.
func (p peer) plan(o options) bench.Parameters {
	return bench.Parameters{
		Rows:        cmp.Or(o.rows, p.rows),
		Processes:   p.processes,
		Concurrency: cmp.Or(o.workers, p.workers),
		Payload:     o.payload,
	}
}
