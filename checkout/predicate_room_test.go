package checkout_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"gorm.io/driver/postgres"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/pgcluster"
	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
	"github.com/windrow-go/windrow/model"
)

const (
	claimers  = 8
	wideBatch = 1000
	wideRow   = 20_000 // bytes of data, not compressed
)

// wide is a job on a server with nothing set that has to do with locks, whose
// rows are wide. With the traffic lights on, claimers near each other would not all
// get in.
func wide(t *testing.T) *fixture {
	t.Helper()
	cluster := pgtest.Cluster(t, pgcluster.Options{Settings: map[string]string{"max_connections": "100"}})
	check(t, cluster.CreateDatabase(t.Context(), "job", ""))
	f := postgresAt(t, cluster.URL("job"), checkout.Options{NoTrafficLight: true})
	check(t, f.raw.Exec(`ALTER TABLE windrow.datasets ALTER data SET STORAGE EXTERNAL`).Error)
	check(t, f.raw.Exec(`
		INSERT INTO windrow.datasets (data)
		SELECT jsonb_build_object('n', n, 'text', repeat('windrow ', ? / 8))
		FROM generate_series(1, ?) AS n`, wideRow, claimers*wideBatch).Error)
	return f
}

// gate lets every check-out wait amid its transaction, after its UPDATE, for as
// long as the test holds it shut. (A check-out waits a second for a lock at most,
// so it asks again and again instead.)
func (f *fixture) gate() (open func()) {
	f.t.Helper()
	for _, statement := range []string{
		`CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN
				WHILE NOT pg_try_advisory_xact_lock_shared(42) LOOP
					PERFORM pg_sleep(0.01);
				END LOOP;
				RETURN NULL;
			END $$`,
		`CREATE TRIGGER gate AFTER UPDATE ON windrow.datasets FOR EACH STATEMENT EXECUTE FUNCTION wait_at_gate()`,
	} {
		check(f.t, f.raw.Exec(statement).Error)
	}
	keeper := openRaw(f.t, postgres.Open(f.url))
	pool, err := keeper.DB()
	check(f.t, err)
	pool.SetMaxOpenConns(1)
	check(f.t, keeper.Exec(`SELECT pg_advisory_lock(42)`).Error)
	return func() {
		f.t.Helper()
		check(f.t, keeper.Exec(`SELECT pg_advisory_unlock(42)`).Error)
		check(f.t, f.raw.Exec(`DROP TRIGGER gate ON windrow.datasets`).Error)
		check(f.t, f.raw.Exec(`DROP FUNCTION wait_at_gate`).Error)
	}
}

// in is the fixture for a subtest.
func (f *fixture) in(t *testing.T) *fixture {
	other := *f
	other.t = t
	return &other
}

// predicateLock counts the SIRead locks of one kind, of all transactions.
type predicateLock struct {
	Relation, Locktype string
	N                  int
}

// sireads waits until so many transactions have predicate locks.
func (f *fixture) sireads(transactions int) (locks []predicateLock) {
	f.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for n := 0; n < transactions; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.t.Fatalf("%d transactions are under way, want %d", n, transactions)
		}
		check(f.t, f.raw.Raw(`
			SELECT count(DISTINCT s.pid)
			FROM pg_locks AS s
			JOIN pg_stat_activity AS p ON p.pid = s.pid
			WHERE s.mode = 'SIReadLock' AND p.wait_event = 'PgSleep'`).Scan(&n).Error)
	}
	check(f.t, f.raw.Raw(`
		SELECT CAST(CAST(relation AS regclass) AS text) AS relation, locktype, count(*) AS n
		FROM pg_locks WHERE mode = 'SIReadLock' GROUP BY 1, 2 ORDER BY 1, 2`).Scan(&locks).Error)
	return locks
}

// Eight transactions at once, each with the most that the walker hands out.
func TestManyWideCheckOutsAtOnceLockNoWholeRelation(t *testing.T) {
	f := wide(t)
	batches, scattered := make([][]int64, claimers), make([][]int64, claimers)
	for c := range claimers {
		batches[c] = neighbours(c*wideBatch+1, wideBatch)
		for k := range 10 {
			scattered[c] = append(scattered[c], int64(claimers*wideBatch/10*k+c*10+1))
		}
	}
	for name, keys := range map[string][][]int64{"1,000 neighbours": batches, "10 scattered": scattered} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			f.expire()
			open := f.gate()
			var group errgroup.Group
			for c := range claimers {
				s := f.open()
				group.Go(func() error {
					claims, err := s.CheckOutKeys(t.Context(), fmt.Sprint(c), lease, keys[c])
					if err == nil && len(claims) != len(keys[c]) {
						err = fmt.Errorf("claimer %d: %d claims, want %d", c, len(claims), len(keys[c]))
					}
					return err
				})
			}
			locks := f.sireads(claimers)
			for _, l := range locks {
				switch {
				case l.Locktype == "relation":
					t.Errorf("the whole of %s is locked: %v", l.Relation, locks)
				case l.Relation == "windrow.datasets": // a row's lock goes when the row is written
					t.Errorf("more rows are locked than were written: %v", locks)
				}
			}
			open()
			check(t, group.Wait())
		})
	}
}

// A transaction of somebody else's may leave no room for predicate locks, on a
// server that has little: a check-out then says which setting to raise, and nothing
// of it stays. As soon as there is room again, it works.
func TestAServerWithoutRoomForPredicateLocksSaysWhatToRaise(t *testing.T) {
	cluster := pgtest.Cluster(t, pgcluster.Options{Settings: map[string]string{
		"max_connections":                "10",
		"max_pred_locks_per_transaction": "10",
		"max_pred_locks_per_relation":    "100000", // never the whole relation instead
		"max_pred_locks_per_page":        "100000",
	}})
	check(t, cluster.CreateDatabase(t.Context(), "job", ""))
	f := postgresAt(t, cluster.URL("job"), checkout.Options{})
	f.grow(20_000)
	keys := spread(10, 20_000)

	hog := f.fillPredicateLocks()
	_, err := f.CheckOutKeys(t.Context(), "a", lease, keys)
	if !errors.Is(err, model.ErrUnavailable) {
		t.Fatalf("got %v, want ErrUnavailable", err)
	}
	for _, want := range []string{"53200", "raise max_pred_locks_per_transaction", "--max-batch"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want it to say %s", err, want)
		}
	}
	check(t, hog())
	for _, id := range keys {
		f.wantState(id, model.Fresh)
	}
	claims, err := f.CheckOutKeys(t.Context(), "a", lease, keys)
	check(t, err)
	equal(t, "claims", len(claims), len(keys))
}

// fillPredicateLocks opens a transaction that reads row after row until the server
// has no room left for a predicate lock; end it to make room again.
func (f *fixture) fillPredicateLocks() (end func() error) {
	f.t.Helper()
	pool, err := f.raw.DB()
	check(f.t, err)
	hog, err := pool.BeginTx(context.WithoutCancel(f.t.Context()), &sql.TxOptions{Isolation: sql.LevelSerializable})
	check(f.t, err)
	f.t.Cleanup(func() { _ = hog.Rollback() }) // ended already, if all went well
	for _, statement := range []string{`SET LOCAL enable_seqscan = off`, `SET LOCAL enable_bitmapscan = off`, `SAVEPOINT before`} {
		_, err := hog.Exec(statement)
		check(f.t, err)
	}
	_, err = hog.Exec(`SELECT sum(id) FROM windrow.datasets WHERE id BETWEEN 1 AND 20000 AND length(CAST(data AS text)) > 0`)
	if err == nil || !strings.Contains(err.Error(), "53200") {
		f.t.Fatalf("got %v, want the server to be full", err)
	}
	_, err = hog.Exec(`ROLLBACK TO SAVEPOINT before`) // which gives no predicate lock back
	check(f.t, err)
	return hog.Rollback
}
