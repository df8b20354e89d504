package txn_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/txn"
)

// impatient makes every connection of db give up at once where another process
// writes, so that the retry is seen and not SQLite's own waiting.
func impatient(t *testing.T, db *gorm.DB) {
	t.Helper()
	pool, err := db.DB()
	check(t, err)
	pool.SetMaxOpenConns(1)
	exec(t, db, `PRAGMA busy_timeout = 0`)
}

func TestABusyFileIsRetried(t *testing.T) {
	path := sqlitePath(t)
	theirs := openSQLite(t, path) // before there is a table that isn't windrow's
	mine := openSQLite(t, path, `CREATE TABLE effects (n integer)`)
	impatient(t, mine)
	other := theirs.Begin()
	check(t, other.Error)
	check(t, addEffect(other))
	seen := conflicts{}
	policy := txn.Policy{OnConflict: func(r txn.Reason) {
		if seen[r]++; seen[r] == 3 {
			check(t, other.Commit().Error)
		}
	}}
	check(t, txn.Retry(t.Context(), policy, func() error {
		return txn.Immediate(t.Context(), mine, addEffect)
	}))
	equal(t, "conflicts counted", seen[txn.ReasonBusy], 3)
	equal(t, "effects", read[int](t, mine, `SELECT count(*) FROM effects`), 2)
}

func TestAReaderIsNotKeptOutByAWriter(t *testing.T) {
	path := sqlitePath(t)
	theirs := openSQLite(t, path) // before there is a table that isn't windrow's
	reader := openSQLite(t, path, `CREATE TABLE effects (n integer)`)
	impatient(t, reader)
	other := theirs.Begin()
	check(t, other.Error)
	check(t, addEffect(other))
	var before int
	check(t, txn.Deferred(t.Context(), reader, func(tx *gorm.DB) error {
		before = read[int](t, tx, `SELECT count(*) FROM effects`)
		check(t, other.Commit().Error)
		equal(t, "effects, in the same transaction", read[int](t, tx, `SELECT count(*) FROM effects`), 0)
		return nil
	}))
	equal(t, "effects before the commit", before, 0)
	equal(t, "effects after it", read[int](t, reader, `SELECT count(*) FROM effects`), 1)
}

func TestABusyFileIsGivenUpInTheEnd(t *testing.T) {
	path := sqlitePath(t)
	theirs := openSQLite(t, path) // before there is a table that isn't windrow's
	mine := openSQLite(t, path, `CREATE TABLE effects (n integer)`)
	impatient(t, mine)
	other := theirs.Begin()
	check(t, other.Error)
	defer other.Rollback()
	err := txn.Retry(t.Context(), txn.Policy{Tries: 3}, func() error {
		return txn.Immediate(t.Context(), mine, addEffect)
	})
	var exhausted *txn.ExhaustedError
	if !errors.As(err, &exhausted) || txn.ReasonOf(err) != txn.ReasonBusy {
		t.Fatalf("got %v, want an ExhaustedError over BUSY", err)
	}
}

func TestATransactionInsideAnotherIsRefusedOnSQLite(t *testing.T) {
	db := openSQLite(t, sqlitePath(t), `CREATE TABLE effects (n integer)`)
	check(t, txn.Immediate(t.Context(), db, func(tx *gorm.DB) error {
		if err := txn.Immediate(t.Context(), tx, addEffect); err == nil {
			t.Error("a transaction was begun inside another")
		}
		return addEffect(tx)
	}))
	equal(t, "effects", read[int](t, db, `SELECT count(*) FROM effects`), 1)
}
