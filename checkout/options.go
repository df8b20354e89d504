package checkout

import (
	"time"

	"go.uber.org/zap"

	"github.com/windrow-go/windrow/internal/txn"
	"github.com/windrow-go/windrow/migrations"
)

// Options configure a store. The zero value is the default.
type Options struct {
	// Schema is the PostgreSQL schema of the job; default "windrow". SQLite
	// has none: a file is a job.
	Schema string
	// NoTrafficLight turns off the advisory lock that keeps claimers out of
	// each other's way on PostgreSQL. Everything stays correct without it, only
	// slower towards the end of a table; for servers that lack such locks.
	NoTrafficLight bool
	// OnConflict, if set, is told of every transaction that had to be done
	// again: op names it ("check out", "check in", …), reason is a
	// txn reason such as "serialization". It must not block.
	OnConflict func(op, reason string)
	// Logger gets slow statements at debug level; nil logs nothing.
	Logger *zap.Logger
}

func (o Options) withDefaults() Options {
	if o.Schema == "" {
		o.Schema = migrations.DefaultSchema
	}
	if o.OnConflict == nil {
		o.OnConflict = func(string, string) {}
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o
}

// policy is how often and how patiently the transaction named op is done again.
func (o Options) policy(op string) txn.Policy {
	return txn.Policy{OnConflict: func(r txn.Reason) { o.OnConflict(op, string(r)) }}
}

// lockTimeout bounds the wait for a row that another transaction holds. A check-in
// waits longer: nobody works on its rows but their holder, so what it waits for is
// room at the end of the table, and to begin again is to queue anew (with forty
// processes on two processors 8 % of the check-ins did).
const (
	lockTimeout        = time.Second
	checkInLockTimeout = 10 * time.Second
)
