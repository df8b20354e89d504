package checkout_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/libtnb/sqlite"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
	"github.com/windrow-go/windrow/migrations"
	"github.com/windrow-go/windrow/model"
	"github.com/windrow-go/windrow/processor"
)

// store is what both engines offer.
type store interface {
	processor.Store
	CheckOutKeys(ctx context.Context, holder string, lease time.Duration, ids []int64) ([]model.Claim, error)
	Reprocess(ctx context.Context, sel checkout.Selection, opts checkout.ReprocessOptions) (checkout.Reprocessed, error)
	Runs(ctx context.Context) ([]checkout.Run, error)
	CancelRun(ctx context.Context, id int64, progress func(checkout.Run) error) (checkout.Run, error)
	History(ctx context.Context, id int64) ([]checkout.Former, error)
	Diff(ctx context.Context, run int64, samples int) (checkout.Diff, error)
	First(ctx context.Context, sel checkout.Selection, n int) ([]int64, error)
	Count(ctx context.Context, sel checkout.Selection) (checkout.Counts, error)
	Counts(ctx context.Context) (checkout.Counts, error)
	ByID(ctx context.Context, id int64) (model.Dataset, time.Time, error)
	ByKey(ctx context.Context, key string) (model.Dataset, time.Time, error)
	Export(ctx context.Context, opts checkout.ExportOptions, each func(checkout.Finished) error) error
	LatestLoad(ctx context.Context, source string) (checkout.Load, error)
	BeginLoad(ctx context.Context, source string, after int64) (checkout.Load, error)
	Sources(ctx context.Context) ([]string, error)
	Append(ctx context.Context, load *checkout.Load, c checkout.Chunk) error
	Analyze(ctx context.Context) (bool, error)
	Note(ctx context.Context, name string) (string, error)
	SetNote(ctx context.Context, name, value string) error
	Workers(ctx context.Context) (workers []model.Worker, now time.Time, err error)
	Overview(ctx context.Context, exact bool) (checkout.Overview, error)
	Verify(ctx context.Context, opts checkout.VerifyOptions) (checkout.Verification, error)
	Add(ctx context.Context, row checkout.NewRow) (id int64, added bool, err error)
	Cancel(ctx context.Context, id int64) error
	CancelKey(ctx context.Context, key string) error
	Now(ctx context.Context) (time.Time, error)
	Pause(ctx context.Context, by string) error
	Resume(ctx context.Context) error
	Failures(ctx context.Context, each func(checkout.Failure) error) error
	Ping(ctx context.Context) error
	Close() error
}

var (
	_ store = (*checkout.Postgres)(nil)
	_ store = (*checkout.SQLite)(nil)
)

// fixture is a migrated job, the way to open it again, and a second way in for
// what no store does: looking at, and turning, its clock.
type fixture struct {
	store
	t      testing.TB
	engine string
	url    string // or path
	log    string // path of the server's log, where a test reads it
	raw    *gorm.DB
	opts   checkout.Options
}

const lease = time.Minute

// onEach runs a test on a fresh job of each engine.
func onEach(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Run("postgres", func(t *testing.T) { test(t, onPostgres(t, checkout.Options{})) })
	t.Run("sqlite", func(t *testing.T) { test(t, onSQLite(t)) })
}

func onPostgres(t testing.TB, opts checkout.Options) *fixture {
	t.Helper()
	if opts.Schema != "" {
		return postgresAt(t, pgtest.Database(t), opts)
	}
	template.Do(func() {
		cluster := pgtest.Shared(t)
		check(t, cluster.CreateDatabase(t.Context(), templateName, ""))
		made := &fixture{t: t, engine: "postgres", url: cluster.URL(templateName)}
		made.migrate()
	})
	return openedAt(t, pgtest.Clone(t, templateName), opts)
}

// template is made once: a database with the default schema's tables, which
// tests copy instead of migrating each its own.
var template sync.Once

const templateName = "migrated"

func postgresAt(t testing.TB, url string, opts checkout.Options) *fixture {
	t.Helper()
	f := &fixture{t: t, engine: "postgres", url: url, opts: opts}
	f.migrate()
	return openedAt(t, url, opts)
}

// openedAt takes tables that are there.
func openedAt(t testing.TB, url string, opts checkout.Options) *fixture {
	t.Helper()
	f := &fixture{t: t, engine: "postgres", url: url, opts: opts}
	f.raw = openRaw(t, postgres.Open(url))
	f.store = f.open()
	return f
}

// migrate makes the tables of a job on PostgreSQL, as whom the URL names.
func (f *fixture) migrate() {
	f.t.Helper()
	db, err := database.OpenPostgres(f.url, nil)
	check(f.t, err)
	migrator, err := migrations.Postgres(db, f.opts.Schema)
	check(f.t, err)
	_, err = migrator.Up(f.t.Context())
	check(f.t, err)
	check(f.t, database.Close(db))
}

func onSQLite(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{t: t, engine: "sqlite", url: filepath.Join(t.TempDir(), "job.db")}
	f.store = f.open()
	f.raw = openRaw(t, sqlite.Open("file:"+f.url+"?_busy_timeout=10000&_txlock=immediate"))
	return f
}

func openRaw(t testing.TB, dialector gorm.Dialector) *gorm.DB {
	t.Helper()
	db, err := gorm.Open(dialector, &gorm.Config{Logger: logger.Discard, SkipDefaultTransaction: true})
	check(t, err)
	t.Cleanup(func() { check(t, database.Close(db)) })
	return db
}

// open opens the job once more, as another process would.
func (f *fixture) open() store {
	f.t.Helper()
	var s store
	var err error
	if f.engine == "postgres" {
		s, err = checkout.OpenPostgres(context.Background(), f.url, f.opts)
	} else {
		s, err = checkout.OpenSQLite(context.Background(), f.url, true, f.opts)
	}
	check(f.t, err)
	f.t.Cleanup(func() { check(f.t, s.Close()) })
	return s
}

// datasets is the table's name for statements of the test's own.
func (f *fixture) datasets() string { return f.table("datasets") }

// table is the name of one of windrow's tables.
func (f *fixture) table(name string) string {
	if f.engine == "sqlite" {
		return name
	}
	return cmp.Or(f.opts.Schema, migrations.DefaultSchema) + "." + name
}

// add loads n rows {"n": 1…n} and returns their ids.
func (f *fixture) add(n int) []int64 {
	f.t.Helper()
	rows := make([]checkout.NewRow, n)
	for i := range rows {
		rows[i].Data = json.RawMessage(fmt.Sprintf(`{"n": %d}`, i+1))
	}
	return f.load("test", rows)
}

func (f *fixture) addKeyed(keys ...string) []int64 {
	f.t.Helper()
	rows := make([]checkout.NewRow, len(keys))
	for i := range rows {
		rows[i] = checkout.NewRow{Key: &keys[i], Data: json.RawMessage(`{"k": "` + keys[i] + `"}`)}
	}
	return f.load("test", rows)
}

func (f *fixture) load(source string, rows []checkout.NewRow) []int64 {
	f.t.Helper()
	latest, err := f.LatestLoad(f.t.Context(), source)
	if !errors.Is(err, checkout.ErrNotFound) {
		check(f.t, err)
	}
	load, err := f.BeginLoad(f.t.Context(), source, latest.ID)
	check(f.t, err)
	check(f.t, f.Append(f.t.Context(), &load, checkout.Chunk{Rows: rows, Records: int64(len(rows)), Last: true}))
	var ids []int64
	check(f.t, f.raw.Raw(`SELECT id FROM `+f.datasets()+` ORDER BY id`).Scan(&ids).Error)
	return ids
}

// expire makes the leases of all held rows run out now, and retries come due.
func (f *fixture) expire() {
	f.t.Helper()
	past := map[string]string{
		"postgres": `clock_timestamp() - interval '1 second'`,
		"sqlite":   `(unixepoch() - 1) * 1000000`,
	}[f.engine]
	sentinel := map[string]string{"postgres": `'epoch'`, "sqlite": `0`}[f.engine]
	check(f.t, f.raw.Exec(`UPDATE `+f.datasets()+` SET available_at = `+past+
		` WHERE NOT is_processed AND available_at > `+sentinel).Error)
}

func (f *fixture) checkOut(s store, holder string, n int) []model.Claim {
	f.t.Helper()
	claims, err := s.CheckOut(f.t.Context(), holder, lease, n)
	check(f.t, err)
	return claims
}

// checkOutOne checks out a row that must be available.
func (f *fixture) checkOutOne(holder string, id int64) model.Claim {
	f.t.Helper()
	claims, err := f.CheckOutKeys(f.t.Context(), holder, lease, []int64{id})
	check(f.t, err)
	if len(claims) != 1 {
		f.t.Fatalf("row %d: got %d claims, want 1", id, len(claims))
	}
	return claims[0]
}

func (f *fixture) checkIn(batch ...model.CheckIn) model.Receipt {
	f.t.Helper()
	receipt, err := f.CheckIn(f.t.Context(), batch)
	check(f.t, err)
	return receipt
}

func (f *fixture) row(id int64) model.Dataset {
	f.t.Helper()
	row, _, err := f.ByID(f.t.Context(), id)
	check(f.t, err)
	return row
}

func (f *fixture) state(id int64) model.State {
	f.t.Helper()
	row, now, err := f.ByID(f.t.Context(), id)
	check(f.t, err)
	return row.State(now)
}

func (f *fixture) wantState(id int64, want model.State) {
	f.t.Helper()
	if got := f.state(id); got != want {
		f.t.Fatalf("row %d is %s, want %s", id, got, want)
	}
}

func done(c model.Claim, result string) model.CheckIn {
	return model.CheckIn{Ticket: c.Ticket(), Outcome: model.Outcome{Verdict: model.VerdictDone, Result: json.RawMessage(result)}}
}

func failed(c model.Claim, text string) model.CheckIn {
	return model.CheckIn{Ticket: c.Ticket(), Outcome: model.Outcome{Verdict: model.VerdictFailed, Error: text}}
}

func retry(c model.Claim, delay time.Duration, text string) model.CheckIn {
	return model.CheckIn{Ticket: c.Ticket(), Outcome: model.Outcome{Verdict: model.VerdictRetry, Delay: delay, Error: text}}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}
