package schedule

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
)

// Function is what a schedule's Function runs. What it writes to output is kept with
// the run, at least the end of it. It has to return soon after ctx is done;
// context.Cause tells why it is ([ErrCancelled], [ErrTimeout], [ErrLockLost],
// [ErrStopped]). A panic fails the run.
type Function func(ctx context.Context, run Run, output io.Writer) error

// Options configure a scheduler. The zero value is the default, which runs nothing.
type Options struct {
	// AllowCommands lets it run commands. Whoever may write to the schedules table
	// then has commands run as the user, in the directory and with the environment
	// of this process.
	AllowCommands bool
	// Env are variables, as NAME=VALUE, that commands get besides those of this
	// process, of which windrow's own (WINDROW_*) are left out.
	Env []string
	// Functions are what schedules with a Function can run here, by name.
	Functions map[string]Function
	// Concurrency is the largest number of runs at a time; default: the number of
	// processors.
	Concurrency int
	// Grace is how long runs may go on after the context has ended; then they are
	// told to stop. Default 25 s; negative: they are told at once.
	Grace time.Duration
	// Lease is how soon the lock of a scheduler that has died is free where its
	// session can't hold it: on SQLite, and behind a pooler. It is renewed.
	// Default 30 s; at least 3 s.
	Lease time.Duration
	// Holder identifies the scheduler; default: the host's name, the process's
	// number and some letters that make it unique.
	Holder string
	// Logger gets what happens to runs; nil logs nothing.
	Logger *zap.Logger
}

func (o Options) withDefaults() Options {
	if o.Concurrency == 0 {
		o.Concurrency = runtime.NumCPU()
	}
	if o.Grace == 0 {
		o.Grace = 25 * time.Second
	}
	if o.Lease == 0 {
		o.Lease = 30 * time.Second
	}
	if o.Holder == "" {
		o.Holder = newHolder()
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o
}

func newHolder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	var unique [4]byte
	_, _ = rand.Read(unique[:]) // never fails
	return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), hex.EncodeToString(unique[:]))
}

func (o Options) validate() error {
	switch {
	case o.Concurrency < 0:
		return fmt.Errorf("concurrency %d: must be at least 1", o.Concurrency)
	case o.Lease < 3*time.Second:
		return fmt.Errorf("lease %s: must be at least 3s", o.Lease)
	case !o.AllowCommands && len(o.Functions) == 0:
		return errors.New("the scheduler can run nothing: allow commands, or give it functions")
	}
	for _, variable := range o.Env {
		name, _, ok := strings.Cut(variable, "=")
		if !ok || name == "" || strings.ContainsRune(variable, 0) {
			return fmt.Errorf("environment variable %q: it must be NAME=VALUE, without NUL", name)
		}
	}
	for name, function := range o.Functions {
		if name == "" || function == nil {
			return fmt.Errorf("function %q: it needs a name, and must not be nil", name)
		}
	}
	return nil
}

// Scheduler starts the runs that are due. It may be used for one Serve or Tick at a
// time.
type Scheduler struct {
	store Store
	opts  Options
}

// New checks the options.
func New(store Store, opts Options) (*Scheduler, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	return &Scheduler{store: store, opts: opts}, nil
}

// Serve starts runs as they come due, until ctx ends. It sleeps until the next due
// time, and is woken by what is added or asked for. Then it gives its runs the grace
// period to end, and returns nil. While the database is unavailable it waits.
func (s *Scheduler) Serve(ctx context.Context) error {
	e := newEngine(s.store, s.opts)
	return errors.Join(e.serve(ctx), e.leave(ctx))
}

// Tick starts the runs that are due now, waits for them to end, and returns. It
// returns quickly if there are none, or if their locks are held. When ctx ends, its
// runs have the grace period to end, and the error is ctx's.
func (s *Scheduler) Tick(ctx context.Context) (Ticked, error) {
	e := newEngine(s.store, s.opts)
	err := errors.Join(e.tick(ctx), e.leave(ctx))
	if err == nil {
		err = ctx.Err()
	}
	return e.ticked, err
}

// Ticked is what a tick did.
type Ticked struct {
	Started   int // runs that it has started,
	Failed    int // and those of them that did not end well
	Skipped   int // runs whose times were missed
	Abandoned int // runs of schedulers that it found gone
	// Blocked is how many due runs wait for a lock that is held.
	Blocked int64
	// NotAllowed is how many due runs are commands or functions that this scheduler
	// may not, or can't, run.
	NotAllowed int64
}

// question is what this scheduler is able to do.
func (o Options) question() question {
	return question{
		commands:  o.AllowCommands,
		functions: slices.Sorted(maps.Keys(o.Functions)),
	}
}
