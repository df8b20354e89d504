package checkout_test

import (
	"fmt"
	"testing"

	"github.com/windrow-go/windrow/checkout"
)

// recordPredicateLocks makes every UPDATE of the table note, at its end and so
// amid its transaction, which SIRead locks the transaction has.
func (f *fixture) recordPredicateLocks() {
	f.t.Helper()
	for _, statement := range []string{
		`CREATE TABLE predicate_locks (relation text, locktype text)`,
		`CREATE FUNCTION note_locks() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN
				INSERT INTO predicate_locks
				SELECT CAST(CAST(relation AS regclass) AS text), locktype
				FROM pg_locks
				WHERE mode = 'SIReadLock' AND pid = pg_backend_pid();
				RETURN NULL;
			END $$`,
		`CREATE TRIGGER note AFTER UPDATE ON windrow.datasets FOR EACH STATEMENT EXECUTE FUNCTION note_locks()`,
	} {
		check(f.t, f.raw.Exec(statement).Error)
	}
}

// A lock on the whole of the table or of its primary key would make every two
// check-outs conflict.
func TestACheckOutLocksNoWholeRelation(t *testing.T) {
	const rows = 30_000
	for _, width := range []int{100, 4000} {
		f := onPostgres(t, checkout.Options{})
		n := min(rows, 50_000_000/width)
		check(t, f.raw.Exec(fmt.Sprintf(`
			INSERT INTO windrow.datasets (data)
			SELECT jsonb_build_object('n', n, 'text', left(repeat(md5(CAST(n AS text)), 1 + %d / 32), %d))
			FROM generate_series(1, %d) AS n`, width, width, n)).Error)
		f.recordPredicateLocks()
		for name, keys := range map[string][]int64{
			"1,000 neighbours": neighbours(n/3, 1000),
			"10 scattered":     spread(10, n),
			"one":              neighbours(7, 1),
		} {
			t.Run(fmt.Sprintf("%s of %d bytes", name, width), func(t *testing.T) {
				f.expire() // what the others hold
				check(t, f.raw.Exec(`TRUNCATE predicate_locks`).Error)
				claims, err := f.CheckOutKeys(t.Context(), "a", lease, keys)
				check(t, err)
				equal(t, "claims", len(claims), len(keys))
				var locks []struct {
					Relation, Locktype string
					N                  int
				}
				check(t, f.raw.Raw(`SELECT relation, locktype, count(*) AS n FROM predicate_locks GROUP BY 1, 2`).Scan(&locks).Error)
				if len(locks) == 0 {
					t.Fatal("no predicate lock at all: was this SERIALIZABLE?")
				}
				for _, l := range locks {
					if l.Locktype == "relation" {
						t.Errorf("the whole of %s is locked: %v", l.Relation, locks)
					}
				}
			})
		}
	}
}

func spread(n, over int) []int64 {
	keys := make([]int64, n)
	for i := range keys {
		keys[i] = int64(i*over/n + 1)
	}
	return keys
}
