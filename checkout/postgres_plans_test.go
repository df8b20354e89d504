package checkout_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-go/windrow/checkout"
)

// bigJob is a job with enough rows for its plans to prove something, half of them
// done. Nobody vacuums or analyzes it but the test.
func bigJob(t *testing.T) *fixture {
	t.Helper()
	f := onPostgres(t, checkout.Options{})
	f.grow(20_000)
	check(t, f.raw.Exec(`UPDATE windrow.datasets SET is_processed = true, checkouts = 1, attempts = 1 WHERE id <= 10000`).Error)
	return f
}

func (f *fixture) grow(rows int) {
	f.t.Helper()
	check(f.t, f.raw.Exec(`ALTER TABLE windrow.datasets SET (autovacuum_enabled = false)`).Error)
	check(f.t, f.raw.Exec(`INSERT INTO windrow.datasets (data)
		SELECT jsonb_build_object('n', n) FROM generate_series(1, ?) AS n`, rows).Error)
}

// set makes a setting the default of the database's later sessions, and opens one.
func (f *fixture) set(setting, value string) {
	f.t.Helper()
	var name string
	check(f.t, f.raw.Raw(`SELECT current_database()`).Scan(&name).Error)
	check(f.t, f.raw.Exec(fmt.Sprintf(`ALTER DATABASE "%s" SET %s = %s`, name, setting, value)).Error)
	f.store = f.open()
}

func (f *fixture) faults() map[string]checkout.PlanFault {
	f.t.Helper()
	list, err := f.store.(*checkout.Postgres).CheckPlans(f.t.Context())
	check(f.t, err)
	byName := map[string]checkout.PlanFault{}
	for _, fault := range list {
		byName[fault.Statement] = fault
	}
	equal(f.t, "faults of one statement", len(list)-len(byName), 0)
	return byName
}

// wantFaults looks for faults of just these statements, whose cures begin with cure.
func (f *fixture) wantFaults(cure string, statements ...string) map[string]checkout.PlanFault {
	f.t.Helper()
	faults := f.faults()
	want := slices.Sorted(slices.Values(statements))
	equal(f.t, "faults", fmt.Sprint(slices.Sorted(maps.Keys(faults))), fmt.Sprint(want))
	for _, fault := range faults {
		if !strings.HasPrefix(fault.Cure, cure) {
			f.t.Errorf("%s, found %s: %q, want the cure %q", fault.Statement, fault.Found, fault.Cure, cure)
		}
	}
	return faults
}

var (
	looks = []string{"peek fresh", "fresh bounds", "peek due", "agenda", "newest claim"}
	keyed = []string{"bounds", "check in", "check in done", "claim", "renew", "sample"}
)

func TestPlansOfABigTableAreFine(t *testing.T) {
	f := bigJob(t)
	f.wantFaults("")
	check(t, f.raw.Exec(`ANALYZE windrow.datasets`).Error)
	f.wantFaults("")
	f.wantFaults("") // nothing that the first look prepared is in the way
	for _, mode := range []string{"exec", "simple_protocol", "cache_describe"} {
		other := *f
		other.url += "&default_query_exec_mode=" + mode
		other.store = other.open()
		other.wantFaults("")
	}
	f.as("planner", grantsToWork).wantFaults("")
	for _, mode := range []string{"force_generic_plan", "force_custom_plan"} {
		f.set("plan_cache_mode", mode)
		f.wantFaults("")
	}
	var touched int64
	check(t, f.raw.Raw(`SELECT count(*) FROM windrow.datasets WHERE checkouts <> CASE WHEN id <= 10000 THEN 1 ELSE 0 END`).Scan(&touched).Error)
	equal(t, "rows touched", touched, 0)
}

func TestAPlanWithoutItsIndexIsFound(t *testing.T) {
	f := bigJob(t)
	check(t, f.raw.Exec(`ANALYZE windrow.datasets`).Error)
	for index, tt := range map[string]struct {
		drop       string
		statements []string
	}{
		"unprocessed_datasets_idx": {`DROP INDEX windrow.unprocessed_datasets_idx`, looks},
		"datasets_pkey":            {`ALTER TABLE windrow.datasets DROP CONSTRAINT datasets_pkey`, keyed},
	} {
		check(t, f.raw.Exec(tt.drop).Error)
		faults := f.wantFaults("the index "+index+" is missing: ", tt.statements...)
		_, cure, _ := strings.Cut(faults[tt.statements[0]].Cure, ": ")
		check(t, f.raw.Exec(cure).Error)
		f.wantFaults("")

		valid := `UPDATE pg_index SET indisvalid = ? WHERE indexrelid = CAST(? AS regclass)`
		check(t, f.raw.Exec(valid, false, "windrow."+index).Error)
		faults = f.wantFaults("the index "+index+" is not valid: ", tt.statements...)
		_, cure, _ = strings.Cut(faults[tt.statements[0]].Cure, ": ")
		check(t, f.raw.Exec(cure).Error)
		f.wantFaults("")
	}
}

// Whatever else the planner finds instead, it is not the index meant.
func TestAPlanByAnotherIndexIsFound(t *testing.T) {
	f := bigJob(t)
	check(t, f.raw.Exec(`ALTER INDEX windrow.unprocessed_datasets_idx RENAME TO another_idx`).Error)
	check(t, f.raw.Exec(`ANALYZE windrow.datasets`).Error)
	for _, fault := range f.wantFaults("the index unprocessed_datasets_idx is missing: ", looks...) {
		if !strings.HasSuffix(fault.Found, " another_idx") {
			t.Errorf("%s: found %q", fault.Statement, fault.Found)
		}
	}
}

func TestASmallTableProvesNothing(t *testing.T) {
	f := onPostgres(t, checkout.Options{})
	check(t, f.raw.Exec(`DROP INDEX windrow.unprocessed_datasets_idx`).Error)
	f.wantFaults("")
	f.grow(1000)
	f.wantFaults("")
	check(t, f.raw.Exec(`ANALYZE windrow.datasets`).Error)
	f.wantFaults("")
	f.grow(20_000)
	f.wantFaults("the index ", looks...)
}

// What keeps the planner off its way tells what to do.
func TestTheCureFitsWhatWasFound(t *testing.T) {
	f := bigJob(t)
	f.set("random_page_cost", "1e9") // dearer than what is forbidden
	for _, fault := range f.faults() {
		equal(t, "cure before any ANALYZE", fault.Cure, `ANALYZE "windrow".datasets`)
	}
	check(t, f.raw.Exec(`ANALYZE windrow.datasets`).Error)
	faults := f.faults()
	if len(faults) == 0 {
		t.Fatal("no fault at all")
	}
	for _, fault := range faults {
		if !strings.Contains(fault.Cure, "random_page_cost = 1e+09") {
			t.Errorf("%s: cure %q, want it to name the setting", fault.Statement, fault.Cure)
		}
	}
	f.set("random_page_cost", "4")
	f.set("enable_indexscan", "off")
	f.set("enable_indexonlyscan", "off") // alone among the hot statements, the agenda is run with no settings of windrow's
	f.wantFaults("the setting enable_indexscan is off", "agenda", "newest claim")
}

// From its sixth run on, the server may run a statement by a plan that is made for
// any arguments.
func TestAGenericPlanIsLookedAt(t *testing.T) {
	f := bigJob(t)
	f.set("plan_cache_mode", "force_generic_plan")
	check(t, f.raw.Exec(`ALTER TABLE windrow.datasets DROP CONSTRAINT datasets_pkey`).Error)
	for _, fault := range f.wantFaults("the index datasets_pkey is missing: ", keyed...) {
		if fault.Statement != "bounds" && !strings.HasSuffix(fault.Found, " in the generic plan") { // bounds has no arguments
			t.Errorf("%s: found %q", fault.Statement, fault.Found)
		}
	}
}
