package schedule

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/windrow-go/windrow/internal/txn"
	"github.com/windrow-go/windrow/migrations"
)

// Store keeps schedules and their runs. [Postgres] and [SQLite] are the two. Its
// methods may be called from several goroutines at once.
type Store interface {
	// Add makes a schedule and enters its first run. Refused: [ErrExists], and
	// [ErrPast] if its one time has passed.
	Add(ctx context.Context, s Schedule) (Run, error)
	// Enter enters a regular run of a schedule at a time. Refused: [ErrNotFound],
	// [ErrPast], [ErrWaiting] if a regular run waits already, and [ErrTaken].
	Enter(ctx context.Context, name string, at time.Time, by string) (Run, error)
	// RunNow enters an on-demand run. Refused: [ErrNotFound], and [ErrWaiting] if an
	// on-demand run waits already. That of a paused schedule waits for the resume.
	RunNow(ctx context.Context, name, by string) (Run, error)
	// Cancel ends a waiting run at once, and asks the holder of a running one to
	// stop it; the state of the run returned tells which. The successor of a
	// regular run is entered. Refused: [ErrNotFound], [ErrFinished].
	Cancel(ctx context.Context, id int64, by string) (Run, error)
	// Pause keeps further runs of a schedule from starting. Refused: [ErrNotFound].
	Pause(ctx context.Context, name, by string) error
	// Resume undoes Pause. A time that passed meanwhile counts as missed. Refused:
	// [ErrNotFound].
	Resume(ctx context.Context, name string) error
	// Remove ends a schedule: its waiting runs are forgotten, a running one goes on,
	// and its history stays. Refused: [ErrNotFound].
	Remove(ctx context.Context, name string) error
	// List returns all schedules in the order of their names.
	List(ctx context.Context) ([]Overview, error)
	// Get returns one schedule. Refused: [ErrNotFound].
	Get(ctx context.Context, name string) (Overview, error)
	// Run returns one run. Refused: [ErrNotFound].
	Run(ctx context.Context, id int64) (Run, error)
	// History returns up to n finished runs of a schedule, also of one that was
	// removed, the latest first. Refused: [ErrNotFound] if there is neither.
	History(ctx context.Context, name string, n int) ([]Run, error)
	// Close closes the store.
	Close() error

	backend
}

// backend is what a scheduler needs of its store.
type backend interface {
	// look tells a scheduler what there is to do.
	look(ctx context.Context, q question) (agenda, error)
	// start begins a run that is due, if its lock is free, and enters the successor.
	// lease is how long its lease lasts; zero: the caller's session has the lock. A
	// run that is to be skipped is skipped.
	start(ctx context.Context, c candidate, holder string, lease time.Duration) (started, error)
	// keep renews the leases of holder's runs, if it is given one, so that two thirds
	// of it are left at least, and tells which of them are still its own and who has
	// cancelled them.
	keep(ctx context.Context, holder string, lease time.Duration) ([]kept, error)
	// finish stores how a run ended; false: it was no longer holder's.
	finish(ctx context.Context, holder string, e ending) (bool, error)
	// reap marks a run of another holder as abandoned, if that is gone.
	reap(ctx context.Context, h held, by string) (bool, error)
	// lockKey is the number of a lock, for link.
	lockKey(lock *string, run int64) int64
	// link opens what a scheduler needs for as long as it works.
	link(ctx context.Context) (link, error)
}

// link is a scheduler's tie to the database: the locks that it holds by being alive,
// and news.
type link interface {
	// lock takes a lock; false: somebody else has it. Without a session to hold it,
	// it is always granted, and the lease decides.
	lock(ctx context.Context, key int64) (bool, error)
	// unlock gives a lock back.
	unlock(key int64)
	// leased tells that leases serve as locks here.
	leased() bool
	// lost is done when the locks can't be relied on any more.
	lost() context.Context
	// news receives when somebody may have added, asked for, cancelled or finished
	// something.
	news() <-chan struct{}
	// patience is how long a scheduler may wait without looking.
	patience() time.Duration
	close()
}

// question is what a scheduler that looks is able to do.
type question struct {
	commands  bool      // it may run commands
	functions []string  // and has these functions
	until     time.Time // only what was due by then; zero: now
}

// agenda is what there is to do.
type agenda struct {
	now  time.Time
	due  []candidate
	next time.Duration // until the next waiting run is due; -1: none waits
	held []held        // running runs
	// blocked is how many due runs wait for their locks; not allowed how many are
	// not for this scheduler.
	blocked, notAllowed int64
}

// candidate is a run that is due, and whose lock is free.
type candidate struct {
	ID       int64
	Schedule string
	Lock     *string
}

// held is a running run.
type held struct {
	ID     int64
	Holder string
	Lock   *string
	Leased bool // by a lease that has not run out
}

// started is what became of a candidate.
type started struct {
	outcome   outcome
	run       Run
	schedule  Schedule
	abandoned []int64 // runs whose holder was found gone
}

// outcome of an attempt to start a run.
type outcome int

const (
	lostRace outcome = iota // somebody else has started, skipped or cancelled it
	begun                   // it is this scheduler's
	skipped                 // its time was missed
	occupied                // the lock is held
)

// kept is a run that is still its holder's.
type kept struct {
	ID          int64
	CancelledBy string
}

// ending is how a run ended.
type ending struct {
	id         int64
	state      State
	exitStatus *int
	err        string
	output     string
	by         string // who marks it abandoned
}

// StoreOptions configure a store. The zero value is the default.
type StoreOptions struct {
	// Schema is the PostgreSQL schema of the job; default "windrow". SQLite has
	// none: a file is a job.
	Schema string
	// Now, if set, takes the place of the database's clock. It is for tests: clocks
	// of several machines differ.
	Now func() time.Time
	// Logger gets slow statements at debug level; nil logs nothing.
	Logger *zap.Logger
}

func (o StoreOptions) withDefaults() StoreOptions {
	if o.Schema == "" {
		o.Schema = migrations.DefaultSchema
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o
}

// policy is how patiently a transaction is done again that lost a race.
func (o StoreOptions) policy() txn.Policy { return txn.Policy{} }

// outputLimit and errorLimit bound, in bytes, what is kept of a run's output and of
// its error.
const (
	outputLimit = 64 << 10
	errorLimit  = 4 << 10
)
