package txn_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/txn"
)

// failing makes every statement (when is BEFORE INSERT) or every COMMIT
// (CONSTRAINT … DEFERRED) that adds to the table effects raise a SQLSTATE, the
// first k times. A sequence counts them, because a rollback doesn't undo it.
func failing(state string, atCommit bool, k int) []string {
	trigger := `CREATE TRIGGER raise BEFORE INSERT ON effects FOR EACH ROW EXECUTE FUNCTION raise()`
	if atCommit {
		trigger = `CREATE CONSTRAINT TRIGGER raise AFTER INSERT ON effects
			DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION raise()`
	}
	return []string{
		`CREATE TABLE effects (n integer)`,
		`CREATE SEQUENCE raised`,
		fmt.Sprintf(`CREATE FUNCTION raise() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN
				IF nextval('raised') <= %d THEN
					RAISE EXCEPTION 'made by the test' USING ERRCODE = '%s';
				END IF;
				RETURN NEW;
			END $$`, k, state),
		trigger,
	}
}

func addEffect(tx *gorm.DB) error { return tx.Exec(`INSERT INTO effects VALUES (1)`).Error }

func TestAConflictIsRetriedFromBegin(t *testing.T) {
	tests := map[string]struct {
		state    string
		atCommit bool
		want     txn.Reason
	}{
		"serialization failure at a statement": {"40001", false, txn.ReasonSerialization},
		"serialization failure at COMMIT":      {"40001", true, txn.ReasonSerialization},
		"deadlock at a statement":              {"40P01", false, txn.ReasonDeadlock},
		"lock timeout at COMMIT":               {"55P03", true, txn.ReasonLockTimeout},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			db := openPostgres(t, failing(tt.state, tt.atCommit, 3)...)
			seen := conflicts{}
			transactions := map[int64]bool{}
			check(t, txn.Retry(t.Context(), seen.policy(), func() error {
				return txn.Serializable(t.Context(), db, func(tx *gorm.DB) error {
					transactions[read[int64](t, tx, `SELECT CAST(CAST(pg_current_xact_id() AS text) AS bigint)`)] = true
					return addEffect(tx)
				})
			}))
			equal(t, "effects", read[int](t, db, `SELECT count(*) FROM effects`), 1)
			equal(t, "conflicts counted", seen[tt.want], 3)
			equal(t, "transactions", len(transactions), 4)
		})
	}
}

func TestAPermanentErrorIsTriedOnce(t *testing.T) {
	for name, atCommit := range map[string]bool{"at a statement": false, "at COMMIT": true} {
		t.Run(name, func(t *testing.T) {
			db := openPostgres(t, failing("23514", atCommit, 1)...)
			tries := 0
			err := txn.Retry(t.Context(), txn.Policy{}, func() error {
				tries++
				return txn.ReadCommitted(t.Context(), db, addEffect)
			})
			var state interface{ SQLState() string }
			if !errors.As(err, &state) || state.SQLState() != "23514" {
				t.Fatalf("got %v", err)
			}
			equal(t, "tries", tries, 1)
			equal(t, "effects", read[int](t, db, `SELECT count(*) FROM effects`), 0)
		})
	}
}

// A function that loses a statement's error would commit a transaction that is
// doomed; the server answers ROLLBACK.
func TestACommitThatBecameARollbackIsRetried(t *testing.T) {
	db := openPostgres(t, failing("40001", false, 2)...)
	seen := conflicts{}
	check(t, txn.Retry(t.Context(), seen.policy(), func() error {
		return txn.Serializable(t.Context(), db, func(tx *gorm.DB) error {
			_ = addEffect(tx)
			return nil
		})
	}))
	equal(t, "conflicts counted", seen[txn.ReasonRolledBack], 2)
	equal(t, "effects", read[int](t, db, `SELECT count(*) FROM effects`), 1)
}

// Two doctors on call each leave when they see that the other is there. Under
// any weaker isolation both go; here one of them must have been made to look
// again.
func TestWriteSkewIsCaught(t *testing.T) {
	db := openPostgres(t,
		`CREATE TABLE doctors (id integer PRIMARY KEY, on_call boolean NOT NULL)`,
		`INSERT INTO doctors VALUES (1, true), (2, true)`)
	var barrier, running sync.WaitGroup
	barrier.Add(2)
	seen := make([]conflicts, 2)
	errs := make([]error, 2)
	for i := range 2 {
		seen[i] = conflicts{}
		running.Go(func() {
			var once sync.Once
			errs[i] = txn.Retry(t.Context(), seen[i].policy(), func() error {
				return txn.Serializable(t.Context(), db, func(tx *gorm.DB) error {
					var others int
					if err := tx.Raw(`SELECT count(*) FROM doctors WHERE on_call AND id <> ?`, i+1).Scan(&others).Error; err != nil {
						return err
					}
					once.Do(func() { barrier.Done(); barrier.Wait() })
					if others == 0 {
						return nil
					}
					return tx.Exec(`UPDATE doctors SET on_call = false WHERE id = ?`, i+1).Error
				})
			})
		})
	}
	running.Wait()
	check(t, errors.Join(errs...))
	equal(t, "doctors on call", read[int](t, db, `SELECT count(*) FROM doctors WHERE on_call`), 1)
	if n := seen[0][txn.ReasonSerialization] + seen[1][txn.ReasonSerialization]; n < 1 {
		t.Fatal("nobody had to look again: this was not SERIALIZABLE")
	}
}

func TestARealDeadlockIsRetried(t *testing.T) {
	db := openPostgres(t,
		`CREATE TABLE pair (id integer PRIMARY KEY, n integer NOT NULL)`,
		`INSERT INTO pair VALUES (0, 0), (1, 0)`)
	var barrier, running sync.WaitGroup
	barrier.Add(2)
	seen := []conflicts{{}, {}}
	errs := make([]error, 2)
	for i := range 2 {
		running.Go(func() {
			var once sync.Once
			errs[i] = txn.Retry(t.Context(), seen[i].policy(), func() error {
				return txn.ReadCommitted(t.Context(), db, func(tx *gorm.DB) error {
					if err := tx.Exec(`SET LOCAL deadlock_timeout = '50ms'`).Error; err != nil {
						return err
					}
					if err := tx.Exec(`UPDATE pair SET n = n + 1 WHERE id = ?`, i).Error; err != nil {
						return err
					}
					once.Do(func() { barrier.Done(); barrier.Wait() })
					return tx.Exec(`UPDATE pair SET n = n + 1 WHERE id = ?`, 1-i).Error
				})
			})
		})
	}
	running.Wait()
	check(t, errors.Join(errs...))
	equal(t, "sum", read[int](t, db, `SELECT sum(n) FROM pair`), 4)
	if seen[0][txn.ReasonDeadlock]+seen[1][txn.ReasonDeadlock] < 1 {
		t.Fatal("no deadlock was counted")
	}
}

func TestARealLockTimeoutIsRetried(t *testing.T) {
	db := openPostgres(t, `CREATE TABLE one (n integer)`, `INSERT INTO one VALUES (0)`)
	other := db.Begin()
	check(t, other.Error)
	check(t, other.Exec(`UPDATE one SET n = n + 1`).Error)
	timedOut := make(chan struct{})
	seen := conflicts{}
	policy := txn.Policy{OnConflict: func(r txn.Reason) {
		if seen[r]++; seen[r] == 1 {
			close(timedOut)
		}
	}}
	result := make(chan error, 1)
	go func() {
		result <- txn.Retry(t.Context(), policy, func() error {
			return txn.ReadCommitted(t.Context(), db, func(tx *gorm.DB) error {
				if err := tx.Exec(`SET LOCAL lock_timeout = '20ms'`).Error; err != nil {
					return err
				}
				return tx.Exec(`UPDATE one SET n = n + 1`).Error
			})
		})
	}()
	<-timedOut
	check(t, other.Commit().Error)
	check(t, <-result)
	equal(t, "n", read[int](t, db, `SELECT n FROM one`), 2)
	if seen[txn.ReasonLockTimeout] < 1 || len(seen) != 1 {
		t.Fatalf("conflicts counted: %v", seen)
	}
}

func TestATransactionInsideAnotherIsRefused(t *testing.T) {
	db := openPostgres(t, `CREATE TABLE effects (n integer)`)
	var inner error
	ran := false
	err := txn.Serializable(t.Context(), db, func(tx *gorm.DB) error {
		inner = txn.Serializable(t.Context(), tx, func(*gorm.DB) error { ran = true; return nil })
		return addEffect(tx)
	})
	check(t, err)
	if inner == nil || ran {
		t.Fatal("a transaction was begun inside another")
	}
	equal(t, "effects of the outer one", read[int](t, db, `SELECT count(*) FROM effects`), 1)
}

// The server's defaults are the opposite of what is asked for.
func TestEachTransactionHasTheIsolationItSays(t *testing.T) {
	type runner func(context.Context, *gorm.DB, func(*gorm.DB) error) error
	tests := map[string]struct {
		run                   runner
		preset                string
		isolation, isReadOnly string
	}{
		"serializable":   {txn.Serializable, "read committed", "serializable", "off"},
		"read committed": {txn.ReadCommitted, "serializable", "read committed", "off"},
		"snapshot":       {txn.Snapshot, "serializable", "repeatable read", "on"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			db := openPostgres(t)
			name := read[string](t, db, `SELECT current_database()`)
			exec(t, db, `ALTER DATABASE "`+name+`" SET default_transaction_isolation = '`+tt.preset+`'`)
			var isolation, readOnly string
			check(t, tt.run(t.Context(), db, func(tx *gorm.DB) error {
				isolation = read[string](t, tx, `SHOW transaction_isolation`)
				readOnly = read[string](t, tx, `SHOW transaction_read_only`)
				return nil
			}))
			equal(t, "isolation", isolation, tt.isolation)
			equal(t, "read only", readOnly, tt.isReadOnly)
		})
	}
}

func TestAFailedOrPanickingTransactionLeavesNothingOpen(t *testing.T) {
	db := openPostgres(t, `CREATE TABLE effects (n integer)`)
	pool, err := db.DB()
	check(t, err)
	stop := errors.New("stop")
	err = txn.ReadCommitted(t.Context(), db, func(tx *gorm.DB) error { return errors.Join(addEffect(tx), stop) })
	equal(t, "stopped", errors.Is(err, stop), true)
	func() {
		defer func() { equal[any](t, "panic", recover(), "mine") }()
		_ = txn.ReadCommitted(t.Context(), db, func(tx *gorm.DB) error {
			check(t, addEffect(tx))
			panic("mine")
		})
	}()
	equal(t, "connections in use", pool.Stats().InUse, 0)
	equal(t, "effects", read[int](t, db, `SELECT count(*) FROM effects`), 0)
}

func TestPGXCommitsAndRollsBack(t *testing.T) {
	db := openPostgres(t, failing("40001", true, 2)...)
	seen := conflicts{}
	check(t, txn.Retry(t.Context(), seen.policy(), func() error {
		return txn.PGX(t.Context(), db, func(tx pgx.Tx) error {
			_, err := tx.CopyFrom(t.Context(), pgx.Identifier{"effects"}, []string{"n"}, pgx.CopyFromRows([][]any{{1}, {2}}))
			return err
		})
	}))
	equal(t, "conflicts counted", seen[txn.ReasonSerialization], 2)
	equal(t, "effects", read[int](t, db, `SELECT count(*) FROM effects`), 2)
	pool, err := db.DB()
	check(t, err)
	equal(t, "connections in use", pool.Stats().InUse, 0)
}

func TestAnEndedContextEndsATransactionInTheMiddle(t *testing.T) {
	db := openPostgres(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := txn.Retry(ctx, txn.Policy{}, func() error {
		return txn.ReadCommitted(ctx, db, func(tx *gorm.DB) error { return tx.Exec(`SELECT pg_sleep(60)`).Error })
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want the context's error", err)
	}
}
