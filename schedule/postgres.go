package schedule

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/internal/txn"
	"github.com/windrow-go/windrow/migrations"
	"github.com/windrow-go/windrow/model"
)

// Postgres keeps schedules in one schema of a PostgreSQL database.
type Postgres struct {
	db      *gorm.DB
	opts    StoreOptions
	sql     *strings.Replacer
	channel string // where news is announced
}

var _ Store = (*Postgres)(nil)

// OpenPostgres opens the job at url, which libpq's PG* variables, service and
// password files complete. Its tables must be there: an error that wraps
// model.ErrSchema names the command that makes them.
func OpenPostgres(ctx context.Context, url string, opts StoreOptions) (*Postgres, error) {
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
func NewPostgres(ctx context.Context, db *gorm.DB, opts StoreOptions) (*Postgres, error) {
	opts = opts.withDefaults()
	migrator, err := migrations.Postgres(db, opts.Schema)
	if err != nil {
		return nil, err
	}
	if err := migrator.Check(ctx); err != nil {
		return nil, err
	}
	now := "statement_timestamp()"
	if opts.Now != nil {
		now = "CAST(@now AS timestamptz)"
	}
	hash := sha256.Sum256([]byte("windrow schedules\x00" + opts.Schema))
	return &Postgres{
		db:   db,
		opts: opts,
		sql: strings.NewReplacer("{schema}", `"`+opts.Schema+`"`, "{now}", now, "{able}", postgresAbleSQL,
			"{run}", runColumns("r.output"), "{brief}", runColumns("NULL"), "{schedule}", scheduleColumns),
		channel: "windrow_schedules_" + hex.EncodeToString(hash[:8]),
	}, nil
}

// Close closes the store's connections.
func (s *Postgres) Close() error { return database.Close(s.db) }

// lockKey is the number of an advisory lock. It is hashed together with what it is
// for, so that nobody else's number is the same by accident.
func (s *Postgres) lockKey(lock *string, run int64) int64 {
	what := fmt.Sprintf("run\x00%d", run)
	if lock != nil {
		what = "lock\x00" + *lock
	}
	hash := sha256.Sum256([]byte("windrow schedule\x00" + s.opts.Schema + "\x00" + what))
	return int64(binary.BigEndian.Uint64(hash[:8]))
}

// args are a statement's named values, with the clock if that is not the server's.
func (s *Postgres) args(values pgx.NamedArgs) pgx.NamedArgs {
	if values == nil {
		values = pgx.NamedArgs{}
	}
	if s.opts.Now != nil {
		values["now"] = s.opts.Now()
	}
	return values
}

// write runs a transaction that is done again when it loses a race.
func (s *Postgres) write(ctx context.Context, op string, fn func(tx postgresTx) error) error {
	err := txn.Retry(ctx, s.opts.policy(), func() error {
		return txn.PGX(ctx, s.db, func(tx pgx.Tx) error { return fn(postgresTx{Tx: tx, ctx: ctx, store: s}) })
	})
	return explain(op, err)
}

// read runs statements that see the same state, in one round trip.
func (s *Postgres) read(ctx context.Context, op string, statements ...txn.Statement) error {
	err := txn.Retry(ctx, s.opts.policy(), func() error {
		return txn.Pipeline(ctx, s.db, pgx.RepeatableRead, statements...)
	})
	return explain(op, err)
}

// statement is one of read's, whose rows go into a slice.
func statement[T any](s *Postgres, sql string, args pgx.NamedArgs, scan pgx.RowToFunc[T], into *[]T) txn.Statement {
	return txn.Statement{SQL: s.sql.Replace(sql), Args: []any{s.args(args)}, Rows: func(rows pgx.Rows) (err error) {
		*into, err = pgx.AppendRows((*into)[:0], rows, scan)
		return err
	}}
}

// postgresTx is a transaction with the store's statements.
type postgresTx struct {
	pgx.Tx
	ctx   context.Context
	store *Postgres
}

// run carries a statement out and returns how many rows it has changed.
func (tx postgresTx) run(sql string, args pgx.NamedArgs) (int64, error) {
	tag, err := tx.Exec(tx.ctx, tx.store.sql.Replace(sql), tx.store.args(args))
	return tag.RowsAffected(), err
}

// all reads the rows of a statement.
func all[T any](tx postgresTx, sql string, args pgx.NamedArgs, scan pgx.RowToFunc[T]) ([]T, error) {
	rows, err := tx.Query(tx.ctx, tx.store.sql.Replace(sql), tx.store.args(args))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

// first reads the first row of a statement; false: there is none.
func first[T any](tx postgresTx, sql string, args pgx.NamedArgs, scan pgx.RowToFunc[T]) (T, bool, error) {
	rows, err := all(tx, sql, args, scan)
	if err != nil || len(rows) == 0 {
		var none T
		return none, false, err
	}
	return rows[0], true, nil
}

// announce wakes the schedulers when the transaction commits.
func (tx postgresTx) announce() error {
	_, err := tx.run(`SELECT pg_notify(@channel, '')`, pgx.NamedArgs{"channel": tx.store.channel})
	return err
}

func (tx postgresTx) now() (time.Time, error) {
	now, _, err := first(tx, `SELECT {now}`, nil, pgx.RowTo[time.Time])
	return now, err
}

// explain gives a transaction's error its meaning and says what was being done.
func explain(op string, err error) error {
	var exhausted *txn.ExhaustedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exhausted):
		return fmt.Errorf("%s: %w: %w", op, model.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", op, database.Translate(err))
}

// violates tells whether an error is of a unique index.
func violates(err error, index string) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && server.Code == "23505" && server.ConstraintName == index
}

// runColumns are a run's columns in the order in which they are scanned. They are
// plain columns: of an expression's text SQLite's driver makes a time if it looks like
// one.
func runColumns(output string) string {
	return `r.id, r.schedule, r.state, r.on_demand, r.due_at, r.created_at, r.created_by, r.started_at, r.finished_at,
	r.holder, r.lock, r.cancelled_by, r.abandoned_by, r.exit_status, r.error, ` + output
}

func scanRun(row pgx.CollectableRow) (*Run, error) {
	r := new(Run)
	err := row.Scan(r.fields()...)
	return r, err
}

// fields are where runColumns go.
func (r *Run) fields() []any {
	return []any{&r.ID, &r.Schedule, &r.State, &r.OnDemand, &r.DueAt, &r.CreatedAt, &r.CreatedBy, &r.StartedAt, &r.FinishedAt,
		orEmpty{&r.Holder}, orEmpty{&r.Lock}, orEmpty{&r.Cancelled}, orEmpty{&r.Abandoned},
		&r.ExitStatus, orEmpty{&r.Error}, orEmpty{&r.Output}}
}

// orEmpty scans a text, and NULL as the empty one.
type orEmpty struct{ text *string }

// Scan is for the driver.
func (o orEmpty) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		*o.text = ""
	case string:
		*o.text = v
	case []byte:
		*o.text = string(v)
	default:
		return fmt.Errorf("%T is no text", value)
	}
	return nil
}

// scheduleColumns are a schedule's columns in the order in which they are scanned.
const scheduleColumns = `s.name, s.rule, s.timezone, s.lock, s.timeout, s.missed, s.command, s.function,
	s.created_by, s.created_at, s.paused_by, s.paused_at`

// scheduleRow is a schedule as it stands in the database.
type scheduleRow struct {
	Overview
	rule, zone string
	lock       *string
	timeout    float64 // seconds
	command    []byte
}

// fields are where scheduleColumns go.
func (r *scheduleRow) fields() []any {
	return []any{&r.Name, &r.rule, &r.zone, &r.lock, &r.timeout, &r.Missed, &r.command, orEmpty{&r.Function},
		&r.Schedule.CreatedBy, &r.CreatedAt, orEmpty{&r.PausedBy}, &r.PausedAt}
}

func scanSchedule(row pgx.CollectableRow) (*scheduleRow, error) {
	r := new(scheduleRow)
	err := row.Scan(r.fields()...)
	return r, err
}

// overview reads what the columns hold. A rule that can't be read is told of, and
// does not keep others from being listed.
func (r *scheduleRow) overview(known *rules) Overview {
	o := r.Overview
	o.Lock = NoLock
	if r.lock != nil {
		o.Lock = *r.lock
	}
	o.Timeout = time.Duration(r.timeout * float64(time.Second))
	rule, err := known.rule(r.rule, r.zone)
	if err == nil && r.command != nil {
		err = json.Unmarshal(r.command, &o.Command)
	}
	if err != nil {
		o.Broken = err.Error()
	}
	o.Rule = rule
	return o
}

// whole is the schedule alone, or why it can't be read.
func (r *scheduleRow) whole() (Schedule, error) {
	o := r.overview(newRules())
	if o.Broken != "" {
		return Schedule{}, fmt.Errorf("schedule %s: %s", o.Name, o.Broken)
	}
	return o.Schedule, nil
}
