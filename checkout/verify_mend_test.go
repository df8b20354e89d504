package checkout_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/windrow-go/windrow/checkout"
)

// finishPlainly makes rows done by plain SQL, with all that belongs to it.
func (f *fixture) finishPlainly(ids ...int64) {
	f.t.Helper()
	for _, id := range ids {
		check(f.t, f.raw.Exec(f.engineWords(`
			UPDATE {datasets}
			SET is_processed = {true}, result = '1', processed_at = {ahead} 0, checkouts = 1, last_checkout = {ahead} 0
			WHERE id = ?`), id).Error)
	}
}

func counted(v checkout.Verification) map[string]int64 {
	off := map[string]int64{}
	for _, c := range v.Counters {
		off[c.Name] = c.Counted - c.Kept
	}
	return off
}

// What is checked in between the snapshot and the correction is in neither.
func TestCountersAreMendedWhileWorkersGoOn(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ids := f.add(20)
		f.checkIn(done(f.checkOutOne("a", ids[0]), `1`), failed(f.checkOutOne("a", ids[1]), "x"))
		claim := f.checkOutOne("a", ids[2])
		f.finishPlainly(ids[3], ids[4])
		f.insertPlainly(3)
		check(t, f.raw.Exec(`DELETE FROM `+f.datasets()+` WHERE id = ?`, ids[1]).Error)
		var once sync.Once
		between := checkout.VerifyOptions{Progress: func(int64, int64) {
			once.Do(func() { f.checkIn(done(claim, `1`)) })
		}}

		left := f.verify(checkout.VerifyOptions{NoMend: true})
		off := counted(left)
		if left.Mended || !left.Differs() || left.Offences() != 0 || off["done"] != 2 || off["failed"] != -1 || off["rows"] != 2 || off["ids"] != 3 {
			t.Fatalf("%+v", left)
		}
		v := f.verify(between)
		if !v.Mended || v.Unmended != "" || v.Offences() != 0 {
			t.Fatalf("%+v", v)
		}
		sound := f.wantSound(22)
		equal(t, "done", sound.Counters[0], checkout.Counter{Name: "done", Kept: 4, Counted: 4})
		equal(t, "mended again", f.verify(checkout.VerifyOptions{}).Mended, false)
	})
}

// Two that have found the same difference must not both add it.
func TestADifferenceIsMendedOnce(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ids := f.add(5)
		f.finishPlainly(ids[0])
		var once sync.Once
		v := f.verify(checkout.VerifyOptions{Progress: func(int64, int64) {
			once.Do(func() { equal(t, "mended by the other", f.verify(checkout.VerifyOptions{}).Mended, true) })
		}})
		if v.Mended || !strings.Contains(v.Unmended, "another verify") {
			t.Errorf("%+v", v)
		}
		f.wantSound(5)
	})
}

// The overview goes by the counters.
func TestAMendedOverviewIsExactAndNoMoreThanThat(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		f.addSpan()
		f.insertPlainly(500)
		equal(t, "exact with rows by plain SQL", f.overview(false).Exact(), false)
		f.verify(checkout.VerifyOptions{})
		o := f.overview(false)
		equal(t, "exact after a verify", o.Exact(), true)
		f.wantCounts(o, f.exactCounts())

		check(t, f.raw.Exec(`DELETE FROM `+f.datasets()+` WHERE id <= 300`).Error)
		f.verify(checkout.VerifyOptions{})
		o = f.overview(false)
		equal(t, "exact after a verify of fewer rows", o.Exact(), true)
		f.wantCounts(o, f.exactCounts())
		// The ids of the deleted rows don't pass for those of others.
		f.insertPlainly(100)
		equal(t, "exact with other rows by plain SQL", f.overview(false).Exact(), false)
	})
}

// Ids that duplicates have used up are no difference, and stay explained.
func TestIDsOfDuplicatesAreNoDifference(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		f.addKeyed("a", "b", "c")
		key := func(k string) checkout.NewRow { return checkout.NewRow{Key: &k, Data: []byte(`{"k": "` + k + `"}`)} }
		f.load("again", []checkout.NewRow{key("a"), key("b"), key("c"), key("d")})
		f.load("once more", []checkout.NewRow{key("a"), key("b")})
		f.wantSound(4)
		equal(t, "mended", f.verify(checkout.VerifyOptions{}).Mended, false)
	})
}

func TestALookerVerifiesAndAMenderMends(t *testing.T) {
	f := onPostgres(t, checkout.Options{})
	ids := f.add(6000)
	_, err := f.Analyze(t.Context())
	check(t, err)
	f.finishPlainly(ids[0])
	looker := f.as("looker", grantsToLook)
	v := looker.verify(checkout.VerifyOptions{})
	if v.Mended || !strings.Contains(v.Unmended, "INSERT on tallies") || v.Offences() != 0 {
		t.Errorf("%+v", v)
	}
	if plans := named(t, v, "plans"); !strings.Contains(plans.Note, "rights of a worker") {
		t.Errorf("%+v", plans)
	}
	equal(t, "refused", looker.verify(checkout.VerifyOptions{NoMend: true}).Unmended, "")
	equal(t, "notes about plans for the owner", named(t, f.verify(checkout.VerifyOptions{NoMend: true}), "plans").Note, "")
	mender := f.as("mender", append(grantsToMend, grantsToLook...))
	equal(t, "mended", mender.verify(checkout.VerifyOptions{}).Mended, true)
	f.wantSound(6000)
}

func TestPlansThatDontGoByTheIndexAreFound(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		f.add(6000)
		_, err := f.Analyze(t.Context())
		check(t, err)
		f.wantSound(6000)
		check(t, f.raw.Exec(`DROP INDEX `+f.table("unprocessed_datasets_idx")).Error)
		plans := named(t, f.verify(checkout.VerifyOptions{}), "plans")
		if plans.Offences < 2 || !strings.Contains(plans.Samples[0].Reason, `plans "peek fresh" by`) || plans.Samples[0].Cure == "" {
			t.Errorf("%+v", plans)
		}
	})
}

func TestAnEmptyTableIsSound(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		f.wantSound(0)
		equal(t, "differs once all rows are gone", f.verifyEmptied().Differs(), true)
		f.wantSound(0)
	})
}

func (f *fixture) verifyEmptied() checkout.Verification {
	f.t.Helper()
	f.add(3)
	f.checkIn(done(f.checkOutOne("a", f.ids()[0]), `1`))
	check(f.t, f.raw.Exec(`DELETE FROM `+f.datasets()).Error)
	return f.verify(checkout.VerifyOptions{})
}
