package txn_test

import (
	"os"
	"path/filepath"
	"testing"

	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
	"github.com/windrow-go/windrow/internal/txn"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

// openPostgres opens a fresh database in which setup has been run.
func openPostgres(t *testing.T, setup ...string) *gorm.DB {
	t.Helper()
	db, err := database.OpenPostgres(pgtest.Database(t), nil)
	check(t, err)
	t.Cleanup(func() { check(t, database.Close(db)) })
	exec(t, db, setup...)
	return db
}

// openSQLite opens the file at path, which is made if it is missing.
func openSQLite(t *testing.T, path string, setup ...string) *gorm.DB {
	t.Helper()
	db, err := database.OpenSQLite(path, true, nil)
	check(t, err)
	t.Cleanup(func() { check(t, database.Close(db)) })
	exec(t, db, setup...)
	return db
}

func sqlitePath(t *testing.T) string { return filepath.Join(t.TempDir(), "a.db") }

func exec(t *testing.T, db *gorm.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		check(t, db.Exec(s).Error)
	}
}

func read[T any](t *testing.T, db *gorm.DB, query string) T {
	t.Helper()
	var value T
	check(t, db.Raw(query).Scan(&value).Error)
	return value
}

// conflicts counts what OnConflict is told.
type conflicts map[txn.Reason]int

func (c conflicts) policy() txn.Policy {
	return txn.Policy{OnConflict: func(r txn.Reason) { c[r]++ }}
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
