package migrations_test

import (
	"os"
	"path/filepath"
	"testing"

	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
	"github.com/windrow-go/windrow/migrations"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

// place is where one job's tables are, or are to be.
type place struct {
	t      *testing.T
	db     *gorm.DB
	path   string // of the SQLite file; empty on PostgreSQL
	schema string
}

// onEach runs a test on an empty database of each engine.
func onEach(t *testing.T, test func(t *testing.T, p place)) {
	t.Run("postgres", func(t *testing.T) { test(t, postgresAt(t, pgtest.Database(t), "windrow")) })
	t.Run("sqlite", func(t *testing.T) { test(t, sqliteAt(t, filepath.Join(t.TempDir(), "job.db"))) })
}

func postgresAt(t *testing.T, url, schema string) place {
	t.Helper()
	db, err := database.OpenPostgres(url, nil)
	check(t, err)
	t.Cleanup(func() { check(t, database.Close(db)) })
	return place{t: t, db: db, schema: schema}
}

func sqliteAt(t *testing.T, path string) place {
	t.Helper()
	db, err := database.OpenSQLite(path, true, nil)
	check(t, err)
	t.Cleanup(func() { check(t, database.Close(db)) })
	return place{t: t, db: db, path: path}
}

func (p place) migrator() *migrations.Migrator {
	p.t.Helper()
	m, err := migrations.Postgres(p.db, p.schema)
	if p.path != "" {
		m, err = migrations.SQLite(p.db, p.path)
	}
	check(p.t, err)
	return m
}

// table is a table's name for statements of the test's own.
func (p place) table(name string) string {
	if p.schema == "" {
		return name
	}
	return p.schema + "." + name
}

func (p place) exec(statement string) {
	p.t.Helper()
	check(p.t, p.db.Exec(statement).Error)
}

// downTo takes steps back until the version is that.
func (p place) downTo(version int) {
	p.t.Helper()
	for range migrations.Needed - version {
		_, err := p.migrator().Down(p.t.Context())
		check(p.t, err)
	}
}

// downAll takes every step back.
func (p place) downAll() {
	p.t.Helper()
	p.downTo(0)
}

func (p place) count(table string) int {
	p.t.Helper()
	var n int
	check(p.t, p.db.Raw(`SELECT count(*) FROM `+p.table(table)).Scan(&n).Error)
	return n
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}
