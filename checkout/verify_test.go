package checkout_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/model"
)

func (f *fixture) verify(opts checkout.VerifyOptions) checkout.Verification {
	f.t.Helper()
	v, err := f.Verify(f.t.Context(), opts)
	check(f.t, err)
	return v
}

// wantSound fails if a verification finds anything.
func (f *fixture) wantSound(rows int64) checkout.Verification {
	f.t.Helper()
	v := f.verify(checkout.VerifyOptions{NoMend: true})
	equal(f.t, "rows looked at", v.Rows, rows)
	for _, c := range v.Checks {
		if c.Offences > 0 || len(c.Samples) > 0 {
			f.t.Errorf("%s: %d offences: %s", c.Name, c.Offences, reasons(c))
		}
	}
	if v.Differs() {
		f.t.Errorf("counters: %+v", v.Counters)
	}
	return v
}

func reasons(c checkout.Check) string {
	var all []string
	for _, o := range c.Samples {
		id := "-"
		if o.ID != nil {
			id = fmt.Sprint(*o.ID)
		}
		all = append(all, id+" "+o.Reason)
	}
	return strings.Join(all, "; ")
}

// engineWords make a statement fit for both engines.
func (f *fixture) engineWords(statement string) string {
	words := []string{"{datasets}", f.datasets(), "{keys}", f.table("dataset_keys"), "{runs}", f.table("runs")}
	if f.engine == "postgres" {
		words = append(words, "{epoch}", "'epoch'", "{true}", "true", "{ahead}", "clock_timestamp() + interval '1 second' * ")
	} else {
		words = append(words, "{epoch}", "0", "{true}", "1", "{ahead}", "unixepoch() * 1000000 + 1000000 * ")
	}
	return strings.NewReplacer(words...).Replace(statement)
}

// worn is a job that has been through everything that happens to rows, with one row in
// each state: fresh, in flight, waiting, expired, done, failed, done in an earlier
// round, and marked to be worked again.
func worn(f *fixture) []int64 {
	f.t.Helper()
	ctx := f.t.Context()
	ids := f.addKeyed("fresh", "held", "waiting", "expired", "done", "failed", "again", "redo", "lost")
	check(f.t, f.Report(ctx, model.Worker{Holder: "a", Lease: lease.Seconds()}, time.Minute))
	check(f.t, f.Report(ctx, model.Worker{Holder: "gone", Lease: lease.Seconds()}, time.Minute))
	f.checkOutOne("gone", ids[8])
	f.expire()
	claims, err := f.CheckOutKeys(ctx, "gone", lease, []int64{ids[3], ids[8]})
	check(f.t, err)
	equal(f.t, "claims", len(claims), 2)
	f.expire()
	for _, i := range []int{2, 4, 5, 6, 8} {
		c := f.checkOutOne("a", ids[i])
		switch i {
		case 2:
			f.checkIn(retry(c, time.Hour, "x"))
		case 5:
			f.checkIn(failed(c, "x"))
		default:
			f.checkIn(done(c, `{"a": 1}`))
		}
	}
	_, err = f.Reprocess(ctx, checkout.Selection{Keys: []string{"again"}}, checkout.ReprocessOptions{By: "me"})
	check(f.t, err)
	f.checkOutOne("a", ids[1])
	f.checkOutOne("a", ids[7])
	_, err = f.Reprocess(ctx, checkout.Selection{Keys: []string{"redo"}}, checkout.ReprocessOptions{By: "me"})
	check(f.t, err)
	return ids
}

func TestAWornTableIsSound(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ids := worn(f)
		v := f.wantSound(int64(len(ids)))
		equal(t, "expired claims", v.Expired, 1)
		rounds := map[model.State]bool{}
		for _, id := range ids {
			rounds[f.state(id)] = true
		}
		equal(t, "states in the table", len(rounds), 6)
	})
}

func TestEachCheckFindsItsRow(t *testing.T) {
	const fresh, held, waiting, expired, done, failed, again, redo = 0, 1, 2, 3, 4, 5, 6, 7
	tests := map[string]struct {
		check   string
		row     int
		corrupt string // for the row ?
		reason  string
	}{
		"no outcome":              {"outcome", done, `UPDATE {datasets} SET result = NULL WHERE id = ?`, "neither a result nor an error"},
		"both outcomes":           {"one-outcome", failed, `UPDATE {datasets} SET result = '1' WHERE id = ?`, "both"},
		"processed never":         {"processed-at", failed, `UPDATE {datasets} SET processed_at = NULL WHERE id = ?`, "does not say when"},
		"an outcome too early":    {"former-outcome", waiting, `UPDATE {datasets} SET error = 'x' WHERE id = ?`, "no former round"},
		"a former one, no time":   {"former-outcome", again, `UPDATE {datasets} SET processed_at = NULL WHERE id = ?`, "in round 1"},
		"negative attempts":       {"tries", fresh, `UPDATE {datasets} SET attempts = -1 WHERE id = ?`, "-1 attempts"},
		"negative refunds":        {"tries", done, `UPDATE {datasets} SET refunds = -1 WHERE id = ?`, "-1 refunds"},
		"negative round":          {"tries", fresh, `UPDATE {datasets} SET round = -1 WHERE id = ?`, "round -1"},
		"more attempts than outs": {"tries", done, `UPDATE {datasets} SET attempts = 2 WHERE id = ?`, "1 check-outs, 2 attempts"},
		"more losses than tries":  {"tries", waiting, `UPDATE {datasets} SET losses = 2 WHERE id = ?`, "2 losses"},
		"no last check-out":       {"last-checkout", done, `UPDATE {datasets} SET last_checkout = {epoch} WHERE id = ?`, "checked out 1 times"},
		"a first check-out":       {"last-checkout", fresh, `UPDATE {datasets} SET last_checkout = {ahead} 0 WHERE id = ?`, "no check-outs"},
		"a claim from nowhere":    {"claim", fresh, `UPDATE {datasets} SET checked_out_by = 'a' WHERE id = ?`, `by "a" with token 0`},
		"a lease too long":        {"lease", held, `UPDATE {datasets} SET available_at = {ahead} 7200 WHERE id = ?`, `though its leases are 1m0s`},
		"an orphan for long": {"orphan", held, `UPDATE {datasets} SET checked_out_by = 'nobody', available_at = {ahead} 90000 WHERE id = ?`,
			`by "nobody", which is not among the workers`},
		"a mark on a row not held": {"redo", redo, `UPDATE {datasets} SET checked_out_by = NULL WHERE id = ?`, "nobody holds it"},
		"a run that is not there":  {"run", again, `UPDATE {datasets} SET run_id = 99 WHERE id = ?`, "run 99"},
		"a next run that isn't":    {"run", redo, `UPDATE {datasets} SET redo_run = 98 WHERE id = ?`, "run 98"},
		"a key that nobody knows": {"key", fresh, `DELETE FROM {keys} WHERE id = ?`,
			`"fresh", which is not in dataset_keys`},
	}
	onEach(t, func(t *testing.T, f *fixture) {
		ids := worn(f)
		for name, tt := range tests {
			t.Run(name, func(t *testing.T) {
				sub := *f
				sub.t = t
				restore := sub.remember(ids[tt.row])
				defer restore()
				res := f.raw.Exec(f.engineWords(tt.corrupt), ids[tt.row])
				check(t, res.Error)
				equal(t, "rows corrupted", res.RowsAffected, 1)
				sub.wantOnly(tt.check, ids[tt.row], tt.reason)
			})
		}
		f.wantSound(int64(len(ids)))
	})
}

// remember returns what puts a row and its key back as they are now.
func (f *fixture) remember(id int64) func() {
	f.t.Helper()
	check(f.t, f.raw.Exec(`CREATE TABLE `+f.table("kept")+` AS SELECT * FROM `+f.datasets()+` WHERE id = ?`, id).Error)
	return func() {
		check(f.t, f.raw.Exec(`DELETE FROM `+f.datasets()+` WHERE id = ?`, id).Error)
		check(f.t, f.raw.Exec(`INSERT INTO `+f.datasets()+` SELECT * FROM `+f.table("kept")).Error)
		check(f.t, f.raw.Exec(`INSERT INTO `+f.table("dataset_keys")+` (key, id) SELECT key, id FROM `+f.table("kept")+` WHERE key IS NOT NULL ON CONFLICT DO NOTHING`).Error)
		check(f.t, f.raw.Exec(`DROP TABLE `+f.table("kept")).Error)
	}
}

// wantOnly wants one offence in all, of this check and row.
func (f *fixture) wantOnly(name string, id int64, reason string) {
	f.t.Helper()
	v := f.verify(checkout.VerifyOptions{NoMend: true})
	for _, c := range v.Checks {
		switch {
		case c.Name != name && c.Offences == 0:
		case c.Name != name:
			f.t.Errorf("%s has found %s", c.Name, reasons(c))
		case c.Offences != 1 || len(c.Samples) != 1 || c.Samples[0].ID == nil || *c.Samples[0].ID != id:
			f.t.Errorf("%s: %d offences: %s; want row %d", c.Name, c.Offences, reasons(c), id)
		case !strings.Contains(c.Samples[0].Reason, reason):
			f.t.Errorf("%s: %q lacks %q", c.Name, c.Samples[0].Reason, reason)
		}
	}
	equal(f.t, "offences", v.Offences(), 1)
}

// Claims that end by themselves are no offences, and a delay may be of any length.
func TestWhatEndsByItselfIsNoOffence(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ids := worn(f)
		for _, harmless := range []string{
			`UPDATE {datasets} SET checked_out_by = 'nobody', available_at = {ahead} 36000 WHERE id = ?`, // less than a day
			`UPDATE {datasets} SET available_at = {ahead} 90 WHERE id = ?`,                               // within the slack
		} {
			restore := f.remember(ids[1])
			check(t, f.raw.Exec(f.engineWords(harmless), ids[1]).Error)
			f.wantSound(int64(len(ids)))
			restore()
		}
		check(t, f.raw.Exec(f.engineWords(`UPDATE {datasets} SET available_at = {ahead} 1e9 WHERE id = ?`), ids[2]).Error)
		f.wantSound(int64(len(ids)))
		// A worker with longer leases than a day may be forgotten as well.
		check(t, f.Report(t.Context(), model.Worker{Holder: "patient", Lease: 200_000}, time.Minute))
		check(t, f.raw.Exec(f.engineWords(`UPDATE {datasets} SET checked_out_by = 'nobody', available_at = {ahead} 190000 WHERE id = ?`), ids[1]).Error)
		f.wantSound(int64(len(ids)))
	})
}

func TestKeysThatAreNoRowsAreFound(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ids := worn(f)
		n := int64(len(ids))
		check(t, f.raw.Exec(f.engineWords(`INSERT INTO {keys} (key, id) VALUES ('stray', 4711)`)).Error)
		v := f.verify(checkout.VerifyOptions{})
		c := named(t, v, "key-entry")
		if c.Offences != 1 || v.Offences() != 1 || c.Samples[0].ID != nil || !strings.Contains(c.Samples[0].Reason, `"stray" of row 4711`) {
			t.Fatalf("%+v", c)
		}
		check(t, f.raw.Exec(c.Samples[0].Cure).Error)
		f.wantSound(n)

		check(t, f.raw.Exec(f.engineWords(`INSERT INTO {keys} (key, id) VALUES ('second', ?)`), ids[0]).Error)
		f.wantOnly("key-entry", ids[0], `has another key than "second"`)
		check(t, f.raw.Exec(f.engineWords(`DELETE FROM {keys} WHERE key = 'second'`)).Error)

		// Two rows with one key: the second's is not its own.
		check(t, f.raw.Exec(f.engineWords(`INSERT INTO {datasets} (id, key, data) VALUES (1000, 'done', '{}')`)).Error)
		f.wantOnly("key", 1000, fmt.Sprintf(`"done", which is row %d's`, ids[4]))
	})
}

func named(t *testing.T, v checkout.Verification, name string) checkout.Check {
	t.Helper()
	i := slices.IndexFunc(v.Checks, func(c checkout.Check) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("no check %s", name)
	}
	return v.Checks[i]
}

// Of many rows, ten are named; chunks are put together.
func TestAVerificationCountsAllAndNamesTen(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		f.addSpan()
		check(t, f.raw.Exec(f.engineWords(`UPDATE {datasets} SET attempts = -1 WHERE id % 40000 IN (0, 1, 2)`)).Error)
		var looked []int64
		v := f.verify(checkout.VerifyOptions{Progress: func(rows, about int64) {
			looked = append(looked, rows)
			equal(t, "about", about, 200_500)
		}})
		c := named(t, v, "tries")
		if c.Offences != 17 || v.Offences() != 17 || len(c.Samples) != 10 {
			t.Fatalf("%d offences, %d of them tries, %d named", v.Offences(), c.Offences, len(c.Samples))
		}
		if got := reasons(c); !strings.HasPrefix(got, "1 ") || !strings.Contains(got, "; 120000 ") {
			t.Error(got)
		}
		equal(t, "rows", v.Rows, 200_500)
		equal(t, "progress", fmt.Sprint(looked), "[50000 100000 150000 200000 200500]")
	})
}

func TestAnIndexThatIsNotAsMigratedIsFound(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ids := worn(f)
		want := func(reason string) {
			t.Helper()
			c := named(t, f.verify(checkout.VerifyOptions{NoMend: true}), "index")
			if c.Offences != 1 || !strings.Contains(c.Samples[0].Reason, reason) {
				t.Fatalf("%+v", c)
			}
			for _, statement := range strings.Split(c.Samples[0].Cure, "; ") {
				check(t, f.raw.Exec(statement).Error)
			}
			f.wantSound(int64(len(ids)))
		}
		index := f.table("unprocessed_datasets_idx")
		drop := `DROP INDEX ` + index
		check(t, f.raw.Exec(drop).Error)
		want("is missing")
		check(t, f.raw.Exec(drop).Error)
		check(t, f.raw.Exec(f.engineWords(`CREATE INDEX unprocessed_datasets_idx ON {datasets} (id) WHERE NOT is_processed`)).Error)
		want("is another than was migrated")
		if f.engine == "postgres" {
			check(t, f.raw.Exec(`UPDATE pg_index SET indisvalid = false WHERE indexrelid = CAST(? AS regclass)`, index).Error)
			want("is not valid")
			check(t, f.raw.Exec(`ALTER INDEX `+index+` SET (fillfactor = 70)`).Error)
			f.wantSound(int64(len(ids)))
		}
	})
}

// Without the index that keys are found by, they are not looked up one by one.
func TestWithoutAnIndexRowsAreNotSearchedFor(t *testing.T) {
	f := onPostgres(t, checkout.Options{})
	worn(f)
	check(t, f.raw.Exec(`ALTER TABLE windrow.dataset_keys DROP CONSTRAINT dataset_keys_pkey`).Error)
	v := f.verify(checkout.VerifyOptions{NoMend: true})
	if key, entry := named(t, v, "key"), named(t, v, "key-entry"); key.Note == "" || entry.Note == "" || v.Offences() != 1 {
		t.Errorf("%+v\n%+v", key, entry)
	}
	check(t, f.raw.Exec(`ALTER TABLE windrow.datasets DROP CONSTRAINT datasets_pkey`).Error)
	v = f.verify(checkout.VerifyOptions{})
	if rows := named(t, v, "rows"); rows.Note == "" || v.Offences() != 2 || v.Differs() {
		t.Errorf("%+v", v)
	}
}

func TestAnIndexThatLacksRowsIsFound(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ids := worn(f)
		name := map[string]string{"postgres": "queue", "sqlite": "file"}[f.engine]
		f.loseIndexEntry(ids[0])
		v := f.verify(checkout.VerifyOptions{NoMend: true})
		if c := named(t, v, name); c.Offences == 0 || c.Samples[0].Cure == "" {
			t.Errorf("%+v", c)
		}
		equal(t, "rows", v.Rows, int64(len(ids)))
	})
}

// loseIndexEntry changes a row while the index of the queue is not kept up.
func (f *fixture) loseIndexEntry(id int64) {
	f.t.Helper()
	change := f.engineWords(`UPDATE {datasets} SET available_at = {ahead} 3600 WHERE id = ?`)
	if f.engine == "postgres" { // as it is before an index begins to be built
		const set = `UPDATE pg_index SET indisready = ?, indisvalid = ? WHERE indexrelid = CAST('windrow.unprocessed_datasets_idx' AS regclass)`
		check(f.t, f.raw.Exec(set, false, false).Error)
		check(f.t, f.raw.Exec(change, id).Error)
		check(f.t, f.raw.Exec(set, true, true).Error)
		return
	}
	pool, err := f.raw.DB()
	check(f.t, err)
	pool.SetMaxOpenConns(1)
	steps := []string{
		`PRAGMA writable_schema = 1`,
		`CREATE TABLE kept AS SELECT * FROM sqlite_master WHERE name = 'unprocessed_datasets_idx'`,
		`DELETE FROM sqlite_master WHERE name = 'unprocessed_datasets_idx'`,
		`PRAGMA schema_version = 1000`,
		strings.ReplaceAll(change, "?", fmt.Sprint(id)),
		`INSERT INTO sqlite_master SELECT * FROM kept`,
		`PRAGMA schema_version = 1001`,
		`DROP TABLE kept`,
	}
	for _, step := range steps {
		check(f.t, f.raw.Exec(step).Error)
	}
}
