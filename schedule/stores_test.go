package schedule_test

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/libtnb/sqlite"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
	"github.com/windrow-go/windrow/migrations"
	"github.com/windrow-go/windrow/schedule"
)

// fixture is a job's store, and a second way in for what no store does.
type fixture struct {
	schedule.Store
	t      testing.TB
	engine string
	url    string // or path
	clock  *clock // nil: the database's
	raw    *gorm.DB
}

// clock stands still until it is set.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) set(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = at
}

// onEach runs a test on a fresh job of each engine.
func onEach(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Run("postgres", func(t *testing.T) { test(t, onPostgres(t, nil)) })
	t.Run("sqlite", func(t *testing.T) { test(t, onSQLite(t, nil)) })
}

// onEachAt is onEach with a clock that stands at a time.
func onEachAt(t *testing.T, at time.Time, test func(t *testing.T, f *fixture)) {
	t.Run("postgres", func(t *testing.T) { test(t, onPostgres(t, &clock{at: at})) })
	t.Run("sqlite", func(t *testing.T) { test(t, onSQLite(t, &clock{at: at})) })
}

// template is made once: a database with windrow's tables, which tests copy.
var template sync.Once

const templateName = "migrated"

func onPostgres(t testing.TB, c *clock) *fixture {
	t.Helper()
	template.Do(func() {
		cluster := pgtest.Shared(t)
		check(t, cluster.CreateDatabase(t.Context(), templateName, ""))
		migrate(t, cluster.URL(templateName))
	})
	return openedAt(t, pgtest.Clone(t, templateName), c)
}

func migrate(t testing.TB, url string) {
	t.Helper()
	db, err := database.OpenPostgres(url, nil)
	check(t, err)
	migrator, err := migrations.Postgres(db, "")
	check(t, err)
	_, err = migrator.Up(t.Context())
	check(t, err)
	check(t, database.Close(db))
}

// openedAt takes tables that are there.
func openedAt(t testing.TB, url string, c *clock) *fixture {
	t.Helper()
	f := &fixture{t: t, engine: "postgres", url: url, clock: c}
	f.raw = openRaw(t, postgres.Open(url))
	f.Store = f.open()
	return f
}

func onSQLite(t testing.TB, c *clock) *fixture {
	t.Helper()
	f := &fixture{t: t, engine: "sqlite", url: filepath.Join(t.TempDir(), "job.db"), clock: c}
	f.Store = f.open()
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
func (f *fixture) open() schedule.Store { return f.openAt(f.url) }

func (f *fixture) openAt(url string) schedule.Store {
	f.t.Helper()
	var opts schedule.StoreOptions
	if f.clock != nil {
		opts.Now = f.clock.now
	}
	var s schedule.Store
	var err error
	if f.engine == "postgres" {
		s, err = schedule.OpenPostgres(context.Background(), url, opts)
	} else {
		s, err = schedule.OpenSQLite(context.Background(), url, true, opts)
	}
	check(f.t, err)
	f.t.Cleanup(func() { check(f.t, s.Close()) })
	return s
}

// table is the name of one of windrow's tables.
func (f *fixture) table(name string) string {
	if f.engine == "sqlite" {
		return name
	}
	return migrations.DefaultSchema + "." + name
}

// exec does what no store does, with {runs} and {schedules} for the tables.
func (f *fixture) exec(sql string, args ...any) {
	f.t.Helper()
	check(f.t, f.raw.Exec(f.render(sql), args...).Error)
}

// ago makes a waiting regular run of a schedule due d ago.
func (f *fixture) ago(name string, d time.Duration) {
	f.t.Helper()
	if f.engine == "sqlite" {
		f.exec(`UPDATE {runs} SET due_at = unixepoch('subsec') * 1000000 - ? WHERE schedule = ? AND state = 'waiting' AND NOT on_demand`, d.Microseconds(), name)
		return
	}
	f.exec(`UPDATE {runs} SET due_at = clock_timestamp() - make_interval(secs => ?) WHERE schedule = ? AND state = 'waiting' AND NOT on_demand`, d.Seconds(), name)
}

// count counts runs.
func (f *fixture) count(where string, args ...any) int {
	f.t.Helper()
	var n int
	check(f.t, f.raw.Raw(f.render(`SELECT count(*) FROM {runs} WHERE `+where), args...).Scan(&n).Error)
	return n
}

// noop is a function that does nothing.
func noop(context.Context, schedule.Run, io.Writer) error { return nil }

// every adds a schedule that has a function of its own name.
func (f *fixture) every(name string, d time.Duration) schedule.Run {
	f.t.Helper()
	return f.add(schedule.Schedule{Name: name, Rule: every(f.t, d)})
}

// add adds a schedule; without a command it runs the function "f".
func (f *fixture) add(s schedule.Schedule) schedule.Run {
	f.t.Helper()
	if len(s.Command) == 0 && s.Function == "" {
		s.Function = "f"
	}
	run, err := f.Add(f.t.Context(), s)
	check(f.t, err)
	return run
}

func every(t testing.TB, d time.Duration) schedule.Rule {
	t.Helper()
	rule, err := schedule.Every(d)
	check(t, err)
	return rule
}

// scheduler is one on the fixture's store that runs commands, and a function "f".
func (f *fixture) scheduler(function schedule.Function) *schedule.Scheduler {
	f.t.Helper()
	return f.schedulerOn(f.Store, schedule.Options{Functions: map[string]schedule.Function{"f": function}})
}

func (f *fixture) schedulerOn(store schedule.Store, opts schedule.Options) *schedule.Scheduler {
	f.t.Helper()
	opts.AllowCommands = true
	if opts.Logger == nil {
		opts.Logger = zaptest.NewLogger(f.t, zaptest.Level(zap.WarnLevel))
	}
	s, err := schedule.New(store, opts)
	check(f.t, err)
	return s
}

// tick has a scheduler tick once.
func (f *fixture) tick(function schedule.Function) schedule.Ticked {
	f.t.Helper()
	ticked, err := f.scheduler(function).Tick(f.t.Context())
	check(f.t, err)
	return ticked
}

func (f *fixture) get(name string) schedule.Overview {
	f.t.Helper()
	o, err := f.Get(f.t.Context(), name)
	check(f.t, err)
	return o
}

func (f *fixture) run(id int64) schedule.Run {
	f.t.Helper()
	run, err := f.Run(f.t.Context(), id)
	check(f.t, err)
	return run
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func (f *fixture) render(sql string) string {
	return strings.NewReplacer("{runs}", f.table("schedule_runs"), "{schedules}", f.table("schedules")).Replace(sql)
}
