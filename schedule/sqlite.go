package schedule

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/internal/txn"
	"github.com/windrow-go/windrow/migrations"
)

// SQLite keeps schedules in an SQLite file. Several processes may work on one file.
type SQLite struct {
	db   *gorm.DB
	path string
	opts StoreOptions
	sql  *strings.Replacer
}

var _ Store = (*SQLite)(nil)

// OpenSQLite opens the job in the file at path. A missing file is made if create is
// set, and an older one brought up to date. Some other program's database is refused,
// and left as it was.
func OpenSQLite(ctx context.Context, path string, create bool, opts StoreOptions) (*SQLite, error) {
	db, err := database.OpenSQLite(path, create, opts.Logger)
	if err != nil {
		return nil, err
	}
	s := &SQLite{db: db, path: path}
	s.render(opts.withDefaults())
	if err := s.open(ctx, create); err != nil {
		database.Close(db)
		return nil, err
	}
	return s, nil
}

// render settles what the statements' placeholders stand for.
func (s *SQLite) render(opts StoreOptions) {
	now := nowSQL
	if opts.Now != nil {
		now = "CAST(@now AS INTEGER)"
	}
	s.opts = opts
	s.sql = strings.NewReplacer("{now}", now, "{able}", sqliteAbleSQL, "{run}", runColumns("r.output"),
		"{brief}", runColumns("NULL"), "{schedule}", scheduleColumns)
}

// nowSQL is the database's clock in microseconds; SQLite's own has milliseconds.
const nowSQL = `(CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000)`

func (s *SQLite) open(ctx context.Context, create bool) error {
	migrator, err := migrations.SQLite(s.db, s.path)
	if err != nil {
		return err
	}
	version, err := migrator.Version(ctx)
	if err == nil && version == 0 && !create {
		return fmt.Errorf("%s holds no windrow tables: add a schedule first, or name another database with --database", s.path)
	}
	if err == nil && version < migrations.Needed {
		_, err = migrator.Up(ctx)
	}
	return explain("open "+s.path, err)
}

// Close closes the file.
func (s *SQLite) Close() error { return database.Close(s.db) }

// write runs a transaction that holds the write lock from its beginning.
func (s *SQLite) write(ctx context.Context, op string, fn func(tx sqliteTx) error) error {
	err := txn.Retry(ctx, s.opts.policy(), func() error {
		return txn.Immediate(ctx, s.db, func(db *gorm.DB) error { return fn(sqliteTx{DB: db, store: s}) })
	})
	return explain(op, err)
}

// read runs a transaction that sees the file as it is when it begins.
func (s *SQLite) read(ctx context.Context, op string, fn func(tx sqliteTx) error) error {
	err := txn.Retry(ctx, s.opts.policy(), func() error {
		return txn.Deferred(ctx, s.db, func(db *gorm.DB) error { return fn(sqliteTx{DB: db, store: s}) })
	})
	return explain(op, err)
}

// named are a statement's values.
type named map[string]any

// sqliteTx is a transaction with the store's statements.
type sqliteTx struct {
	*gorm.DB
	store *SQLite
}

// arguments are what gorm is to put in: none at all where the statement names none.
func (tx sqliteTx) arguments(query string, args named) []any {
	if tx.store.opts.Now != nil {
		with := named{"now": tx.store.opts.Now().UnixMicro()}
		for name, value := range args {
			with[name] = value
		}
		args = with
	}
	if !strings.Contains(query, "@") {
		return nil
	}
	return []any{map[string]any(args)}
}

// run carries a statement out and returns how many rows it has changed.
func (tx sqliteTx) run(sql string, args named) (int64, error) {
	sql = tx.store.sql.Replace(sql)
	res := tx.Exec(sql, tx.arguments(sql, args)...)
	return res.RowsAffected, res.Error
}

// allIn reads the rows of a statement.
func allIn[T any](tx sqliteTx, query string, args named, scan func(rows *sql.Rows) (T, error)) ([]T, error) {
	query = tx.store.sql.Replace(query)
	rows, err := tx.Raw(query, tx.arguments(query, args)...).Rows()
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []T
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, errors.Join(rows.Err(), rows.Close())
}

// firstIn reads the first row of a statement; false: there is none.
func firstIn[T any](tx sqliteTx, query string, args named, scan func(rows *sql.Rows) (T, error)) (T, bool, error) {
	found, err := allIn(tx, query, args, scan)
	if err != nil || len(found) == 0 {
		var none T
		return none, false, err
	}
	return found[0], true, nil
}

// value scans the one column of a row.
func value[T any](rows *sql.Rows) (v T, err error) {
	err = rows.Scan(&v)
	return v, err
}

func (tx sqliteTx) now() (time.Time, error) {
	micros, _, err := firstIn(tx, `SELECT {now}`, nil, value[int64])
	return instant(micros), err
}

// instant converts the file's microseconds.
func instant(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// instantOf converts the file's microseconds, if there are any.
func instantOf(micros *int64) *time.Time {
	if micros == nil {
		return nil
	}
	at := instant(*micros)
	return &at
}

// scanFileRun scans runColumns, whose instants are microseconds here.
func scanFileRun(rows *sql.Rows) (*Run, error) {
	r := new(Run)
	var due, created int64
	var began, finished *int64
	fields := r.fields()
	fields[4], fields[5], fields[7], fields[8] = &due, &created, &began, &finished
	err := rows.Scan(fields...)
	r.DueAt, r.CreatedAt, r.StartedAt, r.FinishedAt = instant(due), instant(created), instantOf(began), instantOf(finished)
	return r, err
}

// scanFileSchedule scans scheduleColumns.
func scanFileSchedule(rows *sql.Rows) (*scheduleRow, error) {
	r := new(scheduleRow)
	var created int64
	var paused *int64
	fields := r.fields()
	fields[9], fields[11] = &created, &paused
	err := rows.Scan(fields...)
	r.CreatedAt, r.PausedAt = instant(created), instantOf(paused)
	return r, err
}
