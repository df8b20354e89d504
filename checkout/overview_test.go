package checkout_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/model"
)

func TestAnOverviewOfASmallTableIsExact(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ids := f.add(10)
		claims, err := f.CheckOutKeys(t.Context(), "a", lease, ids[:5])
		check(t, err)
		f.checkIn(done(claims[0], `1`), failed(claims[1], "x"), retry(claims[2], time.Hour, "y"), retry(claims[3], 0, "z"))
		f.insertPlainly(3)
		o := f.overview(false)
		if !o.Exact() || o.OldestDue != 0 || o.Rate != 2.0/60 {
			t.Fatalf("%+v", o)
		}
		f.wantCounts(o, checkout.Counts{model.Fresh: 9, model.Waiting: 1, model.InFlight: 1, model.Expired: 0, model.Done: 1, model.Failed: 1})
		f.expire()
		if o = f.overview(false); o.OldestDue < time.Second || o.OldestDue > 10*time.Second {
			t.Fatalf("oldest due: %v", o.OldestDue)
		}
	})
}

// A large table is one whose ids span much: so it need not be filled.
func TestAnOverviewOfALargeTableNeedsNoCount(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		f.addSpan()
		o := f.overview(false)
		equal(t, "exact", o.Exact(), true)
		f.wantCounts(o, f.exactCounts())

		ids := f.ids()
		claims, err := f.CheckOutKeys(t.Context(), "a", lease, ids[:50])
		check(t, err)
		for i, c := range claims[:40] {
			f.checkIn([]model.CheckIn{done(c, `1`), failed(c, "x"), retry(c, time.Hour, "y"), retry(c, time.Millisecond, "z")}[i%4])
		}
		time.Sleep(5 * time.Millisecond)
		o = f.overview(false)
		equal(t, "exact", o.Exact(), true)
		f.wantCounts(o, f.exactCounts())
		equal(t, "in flight", o.Counts[model.InFlight], 10)
	})
}

func TestAnOverviewSaysWhenItEstimates(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		f.addSpan()
		n := f.exactCounts()[model.Fresh]
		f.insertPlainly(1)
		o := f.overview(false)
		if !o.IsEstimate(model.Fresh) || o.IsEstimate(model.InFlight) || o.Counts[model.Fresh] != n {
			t.Errorf("with a row by plain SQL: %v, estimated %v", o.Counts, o.Estimated)
		}
		// Half of the rows have been processed behind windrow's back.
		check(t, f.raw.Exec(`UPDATE `+f.datasets()+` SET is_processed = (1 = 1) WHERE id % 2 = 0`).Error)
		f.insertPlainly(1)
		check(t, f.raw.Exec(`UPDATE `+f.datasets()+` SET is_processed = (1 = 1)`).Error)
		o = f.overview(false)
		if !o.IsEstimate(model.Done) || o.Counts[model.Done] == 0 || o.Counts[model.Fresh] != 0 {
			t.Errorf("all processed by plain SQL: %v, estimated %v", o.Counts, o.Estimated)
		}
		o = f.overview(true)
		equal(t, "exact", o.Exact(), true)
		f.wantCounts(o, f.exactCounts())
	})
}

// Each row that was checked out and finished within a lease leaves an index entry among
// those of the rows that are held: a fast fleet leaves a million.
func TestHeldRowsThatCannotBeCountedInTimeAreEstimated(t *testing.T) {
	f := onPostgres(t, checkout.Options{})
	f.addSpan()
	claims, err := f.CheckOutKeys(t.Context(), "a", lease, f.ids()[:25])
	check(t, err)
	for _, c := range claims[:20] {
		f.checkIn(retry(c, time.Hour, "y"))
	}
	check(t, f.Report(t.Context(), model.Worker{Holder: "a", InFlight: 5, Lease: lease.Seconds()}, time.Minute))
	const many = 150_000
	upTo := claims[24].ID + many
	for _, change := range []string{
		fmt.Sprintf(`UPDATE windrow.datasets SET available_at = now() + interval '20 seconds', checked_out_by = 'a' WHERE available_at = 'epoch' AND id <= %d`, upTo),
		fmt.Sprintf(`UPDATE windrow.datasets SET is_processed = true, checked_out_by = NULL WHERE id > %d AND id <= %d`, claims[24].ID, upTo),
		fmt.Sprintf(`INSERT INTO windrow.tallies (writer, at, done, failed) VALUES ('a', now(), %d, 0)`, many),
	} {
		check(t, f.raw.Exec(change).Error)
	}
	f.store.(*checkout.Postgres).SetOpenBudget(time.Millisecond)

	o := f.overview(false)
	equal(t, "estimates", fmt.Sprint(o.Estimated, o.TotalEstimated), "[fresh in_flight waiting] false")
	equal(t, "done", o.Counts[model.Done], many)
	equal(t, "total", o.Counts.Total(), 200_500)
	equal(t, "in flight", o.Counts[model.InFlight], 5)
	if o.Next != 0 { // some are fresh
		t.Errorf("the next row is available in %v", o.Next)
	}
	if o.Counts[model.Waiting] < 20 { // they come due after any lease: so they were counted
		t.Errorf("%d wait", o.Counts[model.Waiting])
	}

	// With none fresh the next is one of those that could not be counted, not one of the
	// others that wait for an hour.
	check(t, f.raw.Exec(`INSERT INTO windrow.tallies (writer, at, done, failed) SELECT 'b', now(), count(*), 0 FROM windrow.datasets WHERE NOT is_processed AND available_at = 'epoch'`).Error)
	check(t, f.raw.Exec(`UPDATE windrow.datasets SET is_processed = true WHERE NOT is_processed AND available_at = 'epoch'`).Error)
	if o = f.overview(false); o.Next >= 0 {
		t.Errorf("the next row is said to be available in %v", o.Next)
	}
}

func (f *fixture) overview(exact bool) checkout.Overview {
	f.t.Helper()
	o, err := f.Overview(f.t.Context(), exact)
	check(f.t, err)
	return o
}

func (f *fixture) exactCounts() checkout.Counts {
	f.t.Helper()
	counts, err := f.Counts(f.t.Context())
	check(f.t, err)
	return counts
}

func (f *fixture) wantCounts(o checkout.Overview, want checkout.Counts) {
	f.t.Helper()
	if fmt.Sprint(o.Counts) != fmt.Sprint(want) {
		f.t.Errorf("counts %v, want %v", o.Counts, want)
	}
}

// addSpan loads more rows than are counted for an overview.
func (f *fixture) addSpan() {
	f.t.Helper()
	insert := `INSERT INTO ` + f.datasets() + ` (data) SELECT '{}' FROM generate_series(1, 200500)`
	if f.engine == "sqlite" {
		insert = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200500) INSERT INTO datasets (data) SELECT '{}' FROM n`
	}
	check(f.t, f.raw.Exec(insert).Error)
	check(f.t, f.raw.Exec(`INSERT INTO `+f.table("loads")+` (source, inserted) VALUES ('many', 200500)`).Error)
}

func (f *fixture) insertPlainly(n int) {
	f.t.Helper()
	for range n {
		check(f.t, f.raw.Exec(`INSERT INTO `+f.datasets()+` (data) VALUES ('{}')`).Error)
	}
}

func (f *fixture) ids() (ids []int64) {
	f.t.Helper()
	check(f.t, f.raw.Raw(`SELECT id FROM `+f.datasets()+` ORDER BY id LIMIT 1000`).Scan(&ids).Error)
	return ids
}
