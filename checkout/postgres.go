package checkout

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/internal/txn"
	"github.com/windrow-go/windrow/migrations"
	"github.com/windrow-go/windrow/model"
)

// Postgres is a job's tables in one schema of a PostgreSQL database. Its methods
// may be called from several goroutines at once; check-outs take turns.
type Postgres struct {
	db       *gorm.DB
	opts     Options
	sql      postgresSQL
	channel  string // where added rows are announced
	light    int32  // the traffic light's space of advisory locks
	job      string // the job's uuid
	walker   *walker
	agenda   *looks
	registry *registry
	turn     chan struct{} // held by the pipeline that is under way
	ear      atomic.Pointer[ear]

	openBudget time.Duration // as the constant says
}

// OpenPostgres opens the job at url, which libpq's PG* variables, service and
// password files complete. Its tables must be there: an error that wraps
// model.ErrSchema names the command that makes them.
func OpenPostgres(ctx context.Context, url string, opts Options) (*Postgres, error) {
	db, err := database.OpenPostgres(url, opts.Logger)
	if err != nil {
		return nil, err
	}
	store, err := NewPostgres(ctx, db, opts)
	if err != nil {
		database.Close(db)
		return nil, err
	}
	return store, nil
}

// NewPostgres is OpenPostgres on an open database.
func NewPostgres(ctx context.Context, db *gorm.DB, opts Options) (*Postgres, error) {
	known := &registry{}
	opts = known.counting(opts.withDefaults())
	migrator, err := migrations.Postgres(db, opts.Schema)
	if err != nil {
		return nil, err
	}
	if err := migrator.Check(ctx); err != nil {
		return nil, err
	}
	s := &Postgres{
		db:         db,
		opts:       opts,
		sql:        renderPostgres(opts.Schema, !opts.NoTrafficLight),
		channel:    "windrow_" + opts.Schema,
		light:      lightSpace(opts.Schema),
		agenda:     &looks{},
		registry:   known,
		turn:       make(chan struct{}, 1),
		openBudget: openBudget,
	}
	s.walker = newWalker(s, opts.policy("check out"))
	if s.job, err = s.Note(ctx, "uuid"); err != nil {
		return nil, err
	}
	return s, nil
}

// Close closes the store's connections.
func (s *Postgres) Close() error {
	s.restEar(true)
	return database.Close(s.db)
}

// Ping tells whether the server answers.
func (s *Postgres) Ping(ctx context.Context) error { return database.Ping(ctx, s.db) }

// postgresSQL holds the statements with the schema's name put in.
type postgresSQL struct {
	peekFresh, sample, bounds, freshBounds, peekDue       string
	claim, checkInDone, checkIn, checkInVerdicts, renew   string
	agenda, newest                                        string
	putBack, finishRun, unfinishedRun, insertRun          string
	seeRun, lockRun, runs, runsLeft, cancelRun, lookAtRun string
	runLeft, restore, history, diff                       string
	counts, byID, byKey, export                           string
	insertKeyed, compareKeyed                             string
	add, addKeyed, cancel, tally, tallyUp                 string
	marked, mark, spend, spent                            string
	report, fold, forget, workers, paused                 string
	facts, open, oldestDue, anyFresh                      string
	schema                                                string
}

func renderPostgres(schema string, light bool) postgresSQL {
	r := strings.NewReplacer("{schema}", `"`+schema+`"`, "{back}", backSQL, "{live}", liveSQL, "{light}", lightSQL)
	if !light {
		r = strings.NewReplacer("{schema}", `"`+schema+`"`, "{back}", backSQL, "{live}", liveSQL, "{light}", "")
	}
	return postgresSQL{
		peekFresh:       r.Replace(peekFreshSQL),
		sample:          r.Replace(sampleSQL),
		bounds:          r.Replace(boundsSQL),
		freshBounds:     r.Replace(freshBoundsSQL),
		peekDue:         r.Replace(peekDueSQL),
		claim:           r.Replace(claimSQL),
		checkIn:         r.Replace(checkInSQL),
		checkInDone:     r.Replace(checkInDoneSQL),
		checkInVerdicts: r.Replace(checkInVerdictsSQL),
		renew:           r.Replace(renewSQL),
		agenda:          r.Replace(agendaSQL),
		newest:          r.Replace(newestSQL),
		putBack:         r.Replace(putBackSQL),
		unfinishedRun:   r.Replace(unfinishedRunSQL),
		insertRun:       r.Replace(insertRunSQL),
		seeRun:          r.Replace(seeRunSQL),
		lockRun:         r.Replace(lockRunSQL),
		runs:            r.Replace(runsSQL),
		runsLeft:        r.Replace(runsLeftSQL),
		runLeft:         r.Replace(runLeftSQL),
		cancelRun:       r.Replace(cancelRunSQL),
		lookAtRun:       r.Replace(lookAtRunSQL),
		restore:         r.Replace(restoreSQL),
		history:         r.Replace(historySQL),
		diff:            r.Replace(diffSQL),
		finishRun:       r.Replace(finishRunSQL),
		counts:          r.Replace(countsSQL),
		byID:            r.Replace(byIDSQL),
		byKey:           r.Replace(byKeySQL),
		export:          r.Replace(exportSQL),
		insertKeyed:     r.Replace(insertKeyedSQL),
		compareKeyed:    r.Replace(compareKeyedSQL),
		add:             r.Replace(addSQL),
		addKeyed:        r.Replace(addKeyedSQL),
		cancel:          r.Replace(cancelSQL),
		tally:           r.Replace(tallySQL),
		tallyUp:         r.Replace(tallyUpSQL),
		marked:          r.Replace(markedSQL),
		mark:            r.Replace(markSQL),
		spend:           r.Replace(spendSQL),
		spent:           r.Replace(spentSQL),
		report:          r.Replace(reportSQL),
		fold:            r.Replace(foldSQL),
		forget:          r.Replace(forgetSQL),
		workers:         r.Replace(workersSQL),
		paused:          r.Replace(pausedSQL),
		facts:           r.Replace(factsSQL),
		open:            r.Replace(openSQL),
		oldestDue:       r.Replace(oldestDueSQL),
		anyFresh:        r.Replace(anyFreshSQL),
		schema:          `"` + schema + `"`,
	}
}

// lightSpace keeps the traffic lights of different jobs in one database apart.
func lightSpace(schema string) int32 {
	h := fnv.New32a()
	h.Write([]byte("windrow:" + schema))
	return int32(h.Sum32())
}

// settle makes the transaction's statements go the planned way and wait no
// longer than they should. It is local to the transaction, so that it holds, and
// leaks nowhere, behind a pooler too.
//
// Without it a batch of neighbours may be planned as a bitmap scan, which in a
// SERIALIZABLE transaction locks the whole relation, and a join with a batch as
// a hash join over a sequential scan. One whose cost is overestimated would be
// compiled, which has taken two seconds.
var (
	settle        = txn.Statement{SQL: fmt.Sprintf(settleSQL, lockTimeout.Milliseconds())}
	settleCheckIn = txn.Statement{SQL: fmt.Sprintf(settleSQL, checkInLockTimeout.Milliseconds())}
)

const settleSQL = `
SELECT
	set_config('lock_timeout', '%dms', true),
	set_config('jit', 'off', true),
	set_config('enable_seqscan', 'off', true),
	set_config('enable_bitmapscan', 'off', true),
	set_config('enable_hashjoin', 'off', true),
	set_config('enable_mergejoin', 'off', true)`

// pipeline runs statements as one transaction in one round trip.
//
// Those of a process follow one another, on one connection, as long as none of
// them takes longer than its turn: each further connection is another server
// process that has to map, and cache, all pages that the fleet works on; the
// package's documentation has figures.
func (s *Postgres) pipeline(ctx context.Context, level pgx.TxIsoLevel, statements ...txn.Statement) error {
	timer := time.NewTimer(turn)
	defer timer.Stop()
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return txn.Pipeline(ctx, s.db, level, statements...)
}

// inOneTrip is pipeline at READ COMMITTED, done again when it loses a race.
func (s *Postgres) inOneTrip(ctx context.Context, op string, statements ...txn.Statement) error {
	err := txn.Retry(ctx, s.opts.policy(op), func() error {
		return s.pipeline(ctx, pgx.ReadCommitted, statements...)
	})
	return explain(op, err)
}

// into reads an answer of one column. Whatever an earlier try has left is dropped.
func into[T any](values *[]T) func(rows pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*values, err = pgx.AppendRows((*values)[:0], rows, pgx.RowTo[T])
		return err
	}
}

// scanRow reads an answer of one row. A statement that has failed has none: there
// Scan itself would crash.
func scanRow(rows pgx.Rows, dest ...any) error {
	if !rows.Next() {
		return rows.Err()
	}
	return rows.Scan(dest...)
}

// turn is as long as a statement may wait for a lock.
const turn = lockTimeout

// readCommitted runs a transaction that is done again when it loses a race.
func (s *Postgres) readCommitted(ctx context.Context, op string, fn func(tx *gorm.DB) error) error {
	err := txn.Retry(ctx, s.opts.policy(op), func() error {
		return txn.ReadCommitted(ctx, s.db, fn)
	})
	return explain(op, err)
}

// explain gives a transaction's error its meaning and says what was being done.
func explain(op string, err error) error {
	if err == nil {
		return nil
	}
	var exhausted *txn.ExhaustedError
	if errors.As(err, &exhausted) {
		return fmt.Errorf("%s: %w: %w", op, model.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", op, database.Translate(err))
}

// array passes a slice to the driver as one array value: gorm would spell a
// plain slice out as a list of parameters.
type array[T any] struct{ items []T }

func (a array[T]) Value() (driver.Value, error) { return a.items, nil }
