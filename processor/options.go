package processor

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"go.uber.org/zap"
)

// Options tune a [Processor]. The zero value of each field means its default.
type Options struct {
	// Concurrency is the number of slots: how many rows are processed at once.
	// Default: the number of processors that Go uses.
	Concurrency int
	// Lease is how long a claim is safe from others; at least 1 s, default
	// 60 s. It is renewed while the worker lives, so it bounds how soon the
	// rows of a dead worker are back, not how long a row may take.
	Lease time.Duration
	// Timeout is how long one call of the handler may take before its context
	// ends. Default 0: no limit. It may be longer than Lease. A handler that is
	// still not back 5 s later counts as stuck: its row fails with that reason, as
	// by any error, and another slot takes the place of its own, up to as many
	// times as there are slots.
	Timeout time.Duration
	// MaxAttempts is how many tries a row has in a round, the first included,
	// before it fails with its last error; default 5. Tries that ended with the
	// worker gone don't count; more than MaxAttempts of those fail the row too.
	MaxAttempts int
	// RetryMin is the longest wait before the second try; default 1 s. The wait
	// is random between nothing and a ceiling that doubles with each try.
	RetryMin time.Duration
	// RetryMax bounds that ceiling; default 1 h, not below RetryMin.
	RetryMax time.Duration
	// Grace is how long handlers may go on after a stop before their contexts
	// are cancelled; default 25 s, below the 30 s after which most service
	// managers kill. Negative: cancel at once.
	Grace time.Duration
	// MaxBatch is the most rows of one check-out; default 500. At most twice as
	// many, or one a slot if that is more, are in hand.
	MaxBatch int
	// BatchRows is the most rows of one call of a [BatchHandler]; default 1: rows
	// one by one. Timeout is for the whole call then.
	BatchRows int
	// BatchWait is how long a slot waits for more rows before it calls a
	// BatchHandler with fewer than BatchRows; default 50 ms.
	BatchWait time.Duration
	// Rate bounds how many rows this worker starts in a second, on average.
	// Default 0: no limit.
	Rate float64
	// UntilEmpty ends Run when nothing is available, held by anybody, or
	// waiting for a retry. Default: wait for more.
	UntilEmpty bool
	// MaxFailures ends Run with a [*TooManyFailures] when the handler fails too
	// often. Default: never.
	MaxFailures Budget
	// MaxCost ends Run with a [*CostReached] when the calls of the handler, those
	// of all workers that this table has had, have cost this much by what their
	// answers say (model.Answer.Cost). Default 0: no limit.
	MaxCost float64
	// Version names the version of the handler; it is stored with each outcome.
	// Default: none.
	Version string
	// Holder is the name under which rows are held; it must be unique for each
	// start of a worker. Default: host/process/eight random hex digits.
	Holder string
	// Program is the version of the program in the list of workers. Default: unknown.
	Program string
	// Logger gets what is worth telling. Default: nothing is logged.
	Logger *zap.Logger
}

func (o Options) withDefaults() Options {
	o.Concurrency = cmp.Or(o.Concurrency, runtime.GOMAXPROCS(0))
	o.MaxAttempts = cmp.Or(o.MaxAttempts, 5)
	o.MaxBatch = cmp.Or(o.MaxBatch, 500)
	o.Lease = cmp.Or(o.Lease, time.Minute)
	o.RetryMin = cmp.Or(o.RetryMin, time.Second)
	o.RetryMax = cmp.Or(o.RetryMax, max(time.Hour, o.RetryMin))
	o.BatchRows = cmp.Or(o.BatchRows, 1)
	o.BatchWait = cmp.Or(o.BatchWait, 50*time.Millisecond)
	o.Grace = cmp.Or(o.Grace, 25*time.Second)
	o.Program = cmp.Or(o.Program, "unknown")
	if o.Holder == "" {
		o.Holder = newHolder()
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o
}

func hostName() string {
	host, err := os.Hostname()
	if err != nil {
		return "unknown-host"
	}
	return host
}

func newHolder() string {
	var unique [4]byte
	_, _ = rand.Read(unique[:]) // never fails
	return fmt.Sprintf("%s/%d/%s", hostName(), os.Getpid(), hex.EncodeToString(unique[:]))
}

// validate checks options whose defaults are filled in, and names every fault.
func (o Options) validate() error {
	var faults []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf("options: "+format, args...))
		}
	}
	check(o.Concurrency > 0, "concurrency %d: must be at least 1", o.Concurrency)
	check(o.Lease >= time.Second, "lease %v: must be at least 1s", o.Lease)
	check(o.Timeout >= 0, "timeout %v: must not be negative", o.Timeout)
	check(o.MaxAttempts > 0, "max attempts %d: must be at least 1", o.MaxAttempts)
	check(o.RetryMin > 0, "shortest retry delay %v: must not be negative", o.RetryMin)
	check(o.RetryMax >= o.RetryMin, "longest retry delay %v: must not be below the shortest, %v", o.RetryMax, o.RetryMin)
	check(o.MaxBatch > 0, "max batch %d: must be at least 1", o.MaxBatch)
	check(o.BatchRows > 0, "rows of a batch %d: must be at least 1", o.BatchRows)
	check(o.BatchWait >= 0, "wait for a batch %v: must not be negative", o.BatchWait)
	check(o.Rate >= 0, "rate %v: must not be negative", o.Rate)
	check(o.MaxCost >= 0, "cost %v: must not be negative", o.MaxCost)
	check(o.MaxFailures.Share >= 0 && o.MaxFailures.Share <= 1, "share of failures %v: must be from 0 to 1", o.MaxFailures.Share)
	check(o.MaxFailures.Count >= 0, "number of failures %d: must not be negative", o.MaxFailures.Count)
	return errors.Join(faults...)
}
