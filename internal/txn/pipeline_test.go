package txn_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/txn"
)

var insertEffect = txn.Statement{SQL: `INSERT INTO effects VALUES (1)`}

func effects(t *testing.T, db *gorm.DB) int {
	t.Helper()
	return read[int](t, db, `SELECT count(*) FROM effects`)
}

func TestAPipelineIsOneTransaction(t *testing.T) {
	db := openPostgres(t, `CREATE TABLE effects (n integer)`)
	var level string
	var transactions []int64
	transaction := txn.Statement{
		SQL:  `SELECT CAST(CAST(pg_current_xact_id() AS text) AS bigint) + CAST(@nothing AS bigint)`,
		Args: []any{pgx.NamedArgs{"nothing": 0}},
		Rows: func(rows pgx.Rows) (err error) {
			transactions, err = pgx.AppendRows(transactions, rows, pgx.RowTo[int64])
			return err
		},
	}
	check(t, txn.Pipeline(t.Context(), db, pgx.Serializable,
		txn.Statement{SQL: `SELECT current_setting('transaction_isolation')`, Rows: func(rows pgx.Rows) error {
			rows.Next()
			return rows.Scan(&level)
		}},
		transaction, insertEffect, transaction))
	equal(t, "isolation", level, "serializable")
	equal(t, "effects", effects(t, db), 1)
	if len(transactions) != 2 || transactions[0] != transactions[1] {
		t.Fatalf("transactions: %v, want twice the same", transactions)
	}
}

// Whatever goes wrong, nothing stays behind: neither an effect nor an open
// transaction on the connection, which serves the next call.
func TestAFailedPipelineLeavesNothing(t *testing.T) {
	for name, failing := range map[string]txn.Statement{
		"a statement":        {SQL: `SELECT 1 / 0`},
		"reading an answer":  {SQL: `SELECT 1 / (3 - n) FROM generate_series(1, 3) AS n`, Rows: func(pgx.Rows) error { return nil }},
		"a constraint later": {SQL: `INSERT INTO parents VALUES (1, 2)`},
	} {
		t.Run(name, func(t *testing.T) {
			db := openPostgres(t,
				`CREATE TABLE effects (n integer)`,
				`CREATE TABLE parents (id integer PRIMARY KEY, parent integer REFERENCES parents DEFERRABLE INITIALLY DEFERRED)`)
			pool, err := db.DB()
			check(t, err)
			pool.SetMaxOpenConns(1)
			if err := txn.Pipeline(t.Context(), db, pgx.ReadCommitted, insertEffect, failing, insertEffect); err == nil {
				t.Fatal("no error")
			}
			equal(t, "effects", effects(t, db), 0)
			check(t, txn.Pipeline(t.Context(), db, pgx.ReadCommitted, insertEffect))
			equal(t, "effects of the next", effects(t, db), 1)
		})
	}
}

// COMMIT has left by the time an answer is read.
func TestAReaderThatFailsComesTooLateToRollBack(t *testing.T) {
	db := openPostgres(t, `CREATE TABLE effects (n integer)`)
	refused := errors.New("refused by the reader")
	err := txn.Pipeline(t.Context(), db, pgx.ReadCommitted, insertEffect,
		txn.Statement{SQL: `SELECT 1`, Rows: func(pgx.Rows) error { return refused }})
	if !errors.Is(err, refused) {
		t.Fatalf("got %v", err)
	}
	equal(t, "effects", effects(t, db), 1)
}

func TestAConflictInAPipelineIsRetried(t *testing.T) {
	for name, atCommit := range map[string]bool{"at a statement": false, "at COMMIT": true} {
		t.Run(name, func(t *testing.T) {
			db := openPostgres(t, failing("40001", atCommit, 3)...)
			seen := conflicts{}
			check(t, txn.Retry(t.Context(), seen.policy(), func() error {
				return txn.Pipeline(t.Context(), db, pgx.Serializable, insertEffect)
			}))
			equal(t, "effects", effects(t, db), 1)
			equal(t, "conflicts counted", seen[txn.ReasonSerialization], 3)
		})
	}
}

func TestAPipelineEndsWithItsContext(t *testing.T) {
	db := openPostgres(t, `CREATE TABLE effects (n integer)`)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := txn.Pipeline(ctx, db, pgx.ReadCommitted, insertEffect, txn.Statement{SQL: `SELECT pg_sleep(20)`})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	check(t, txn.Pipeline(t.Context(), db, pgx.ReadCommitted, insertEffect))
	equal(t, "effects", effects(t, db), 1)
}
