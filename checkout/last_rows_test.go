package checkout_test

import (
	"testing"
	"time"

	"github.com/windrow-go/windrow/checkout"
)

// Of a table too large to be looked at as a whole some rows are left, far apart, and
// nobody remembers them. Somebody holds an old snapshot, so that the server can't
// forget the index entries of the others: looking is as dear as it gets.
func TestTheLastRowsOfALargeTableAreFound(t *testing.T) {
	const rows, apart = 120_000, 9_000
	f := onPostgres(t, checkout.Options{})
	f.grow(rows)
	old := f.raw.Begin()
	check(t, old.Exec(`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ`).Error)
	check(t, old.Exec(`SELECT 1 FROM windrow.datasets LIMIT 1`).Error)
	defer old.Rollback()
	check(t, f.raw.Exec(`
		UPDATE windrow.datasets
		SET is_processed = true, available_at = clock_timestamp(), checkouts = 1, checked_out_by = 'others'
		WHERE id % ? <> 0`, apart).Error)

	begun, found := time.Now(), map[int64]bool{}
	for len(found) < rows/apart {
		for _, c := range f.checkOut(f.store, "w", 500) {
			found[c.ID] = true
		}
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("after 20 s %d of %d rows had been found", len(found), rows/apart)
		}
	}
	t.Logf("found after %v", time.Since(begun))
	if again := f.checkOut(f.store, "w", 500); len(again) > 0 {
		t.Errorf("rows that are held were handed out again: %v", again)
	}
}
