package checkout_test

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/migrations"
	"github.com/windrow-go/windrow/model"
)

// The grants that each command needs; {role} is its role.
var (
	grantsToMigrate = []string{
		`GRANT CREATE ON DATABASE {database} TO {role}`, // or a schema that is the role's own
	}
	grantsToLook = []string{
		`GRANT USAGE ON SCHEMA windrow TO {role}`,
		`GRANT SELECT ON ALL TABLES IN SCHEMA windrow TO {role}`,
	}
	grantsToMend = []string{ // besides grantsToLook
		`GRANT INSERT ON windrow.tallies TO {role}`,
	}
	grantsToWork = []string{
		`GRANT USAGE ON SCHEMA windrow TO {role}`,
		`GRANT SELECT ON windrow.schema_version, windrow.job TO {role}`,
		`GRANT SELECT, UPDATE ON windrow.datasets TO {role}`,
		`GRANT SELECT, INSERT, DELETE ON windrow.tallies TO {role}`,
		`GRANT SELECT, INSERT, UPDATE, DELETE ON windrow.workers TO {role}`,
		`GRANT SELECT ON windrow.runs TO {role}`,
		`GRANT INSERT ON windrow.history TO {role}`,
	}
	grantsToMark = []string{ // besides grantsToWork
		`GRANT USAGE ON SCHEMA windrow TO {role}`,
		`GRANT SELECT ON windrow.schema_version, windrow.job TO {role}`,
		`GRANT SELECT, INSERT ON windrow.marks TO {role}`,
	}
	grantsToLoad = []string{
		`GRANT USAGE ON SCHEMA windrow TO {role}`,
		`GRANT SELECT ON windrow.schema_version, windrow.job TO {role}`,
		`GRANT SELECT, INSERT ON windrow.datasets, windrow.dataset_keys TO {role}`,
		`GRANT USAGE ON SEQUENCE windrow.datasets_id_seq TO {role}`,
		`GRANT SELECT, INSERT, UPDATE ON windrow.loads TO {role}`,
	}
	grantsToPause = []string{
		`GRANT USAGE ON SCHEMA windrow TO {role}`,
		`GRANT SELECT ON windrow.schema_version TO {role}`,
		`GRANT SELECT, INSERT, UPDATE ON windrow.job TO {role}`,
	}
	grantsToAdd = []string{
		`GRANT USAGE ON SCHEMA windrow TO {role}`,
		`GRANT SELECT ON windrow.schema_version, windrow.job TO {role}`,
		`GRANT SELECT, INSERT ON windrow.datasets, windrow.dataset_keys TO {role}`,
		`GRANT USAGE ON SEQUENCE windrow.datasets_id_seq TO {role}`,
		`GRANT SELECT, INSERT, DELETE ON windrow.tallies TO {role}`,
	}
	grantsToCancel = []string{
		`GRANT USAGE ON SCHEMA windrow TO {role}`,
		`GRANT SELECT ON windrow.schema_version, windrow.job, windrow.dataset_keys TO {role}`,
		`GRANT SELECT, UPDATE ON windrow.datasets TO {role}`,
		`GRANT SELECT, INSERT, DELETE ON windrow.tallies TO {role}`,
	}
	grantsToReprocess = []string{
		`GRANT USAGE ON SCHEMA windrow TO {role}`,
		`GRANT SELECT ON windrow.schema_version, windrow.job, windrow.dataset_keys TO {role}`,
		`GRANT SELECT, UPDATE ON windrow.datasets TO {role}`,
		`GRANT SELECT, INSERT, UPDATE ON windrow.runs TO {role}`,
		`GRANT SELECT, INSERT, DELETE ON windrow.tallies TO {role}`,
		`GRANT SELECT, INSERT, DELETE ON windrow.history TO {role}`,
	}
)

// as opens the job as a role that has just these grants.
func (f *fixture) as(role string, grants []string) *fixture {
	f.t.Helper()
	login := f.login(role, grants)
	other := *f
	other.url = login
	other.store = other.open()
	return &other
}

// login makes a role and returns the database's URL for it.
func (f *fixture) login(role string, grants []string) string {
	f.t.Helper()
	var name string
	check(f.t, f.raw.Raw(`SELECT current_database()`).Scan(&name).Error)
	check(f.t, f.raw.Exec(`CREATE ROLE `+role+` LOGIN`).Error)
	f.t.Cleanup(func() {
		check(f.t, f.raw.Exec(`DROP OWNED BY `+role+` CASCADE`).Error)
		check(f.t, f.raw.Exec(`DROP ROLE `+role).Error)
	})
	replace := strings.NewReplacer("{role}", role, "{database}", `"`+name+`"`)
	for _, grant := range grants {
		check(f.t, f.raw.Exec(replace.Replace(grant)).Error)
	}
	u, err := url.Parse(f.url)
	check(f.t, err)
	u.User = url.User(role)
	return u.String()
}

// jobs are what the commands do with a store.
var jobs = map[string]func(f *fixture) error{
	"work": func(f *fixture) error {
		ctx := f.t.Context()
		claims, err := f.CheckOutKeys(ctx, "w", lease, []int64{1, 2, 3})
		if err != nil {
			return err
		}
		if _, err := f.Renew(ctx, lease, ticketsOf(claims)); err != nil {
			return err
		}
		var batch []model.CheckIn
		for i, c := range claims {
			in := []model.CheckIn{done(c, `1`), retry(c, 0, "x"), failed(c, "y")}[i]
			in.Effect = func(tx *gorm.DB) error { return tx.Exec(`SELECT 1`).Error }
			batch = append(batch, in)
		}
		for range 2 {
			if _, err := f.CheckIn(ctx, batch); err != nil {
				return err
			}
		}
		if claims, err = f.CheckOut(ctx, "w", lease, 1); err != nil {
			return err
		}
		batch = nil
		for _, c := range claims {
			batch = append(batch, done(c, `1`)) // without an effect
		}
		if _, err := f.CheckIn(ctx, batch); err != nil {
			return err
		}
		if claims, err = f.CheckOut(ctx, "w", lease, 1); err != nil {
			return err
		}
		if err := f.Release(ctx, ticketsOf(claims)); err != nil {
			return err
		}
		if _, err = f.Agenda(ctx); err != nil {
			return err
		}
		if _, err = f.Paused(ctx); err != nil {
			return err
		}
		if err := f.Report(ctx, model.Worker{Holder: "w"}, time.Minute); err != nil {
			return err
		}
		return f.Wait(ctx, 0)
	},
	"mark": func(f *fixture) error {
		m := model.Mark{ID: 1, Round: 1, Name: f.url}
		if err := f.Mark(f.t.Context(), m); err != nil {
			return err
		}
		_, err := f.Marked(f.t.Context(), m)
		return err
	},
	"load": func(f *fixture) error {
		latest, err := f.LatestLoad(f.t.Context(), "in")
		if err != nil && !errors.Is(err, checkout.ErrNotFound) {
			return err
		}
		load, err := f.BeginLoad(f.t.Context(), "in", latest.ID)
		if err != nil {
			return err
		}
		key := "k"
		chunks := [][]checkout.NewRow{
			{{Data: []byte(`1`)}},
			{{Key: &key, Data: []byte(`1`)}},
			{{Key: &key, Data: []byte(`2`)}}, // there already, with other data
		}
		for i, rows := range chunks {
			chunk := checkout.Chunk{Rows: rows, Records: int64(i + 1), Last: i == len(chunks)-1}
			if err := f.Append(f.t.Context(), &load, chunk); err != nil {
				return err
			}
		}
		_, err = f.Analyze(f.t.Context())
		return err
	},
	"add": func(f *fixture) error {
		if _, err := f.Now(f.t.Context()); err != nil {
			return err
		}
		key := "added"
		for range 50 { // among them one at which tallies are summed up
			for _, row := range []checkout.NewRow{{Data: []byte(`1`)}, {Key: &key, Data: []byte(`1`)}, {Data: []byte(`1`)}} {
				if _, _, err := f.Add(f.t.Context(), row); err != nil {
					return err
				}
			}
		}
		return nil
	},
	"cancel": func(f *fixture) error {
		if _, _, err := f.ByKey(f.t.Context(), "k0"); err != nil {
			return err
		}
		for id := range int64(101) { // among them one at which tallies are summed up
			err := f.Cancel(f.t.Context(), id)
			if err != nil && !errors.Is(err, checkout.ErrNotFound) && !errors.Is(err, checkout.ErrProcessed) && !errors.Is(err, checkout.ErrHeld) {
				return err
			}
		}
		return nil
	},
	"look": func(f *fixture) error {
		ctx := f.t.Context()
		if _, err := f.Counts(ctx); err != nil {
			return err
		}
		if _, _, err := f.ByID(ctx, 1); err != nil {
			return err
		}
		if _, _, err := f.ByKey(ctx, "k0"); err != nil {
			return err
		}
		if _, err := f.Count(ctx, checkout.Selection{Keys: []string{"k0"}}); err != nil {
			return err
		}
		if _, err := f.LatestLoad(ctx, "test"); err != nil {
			return err
		}
		if err := f.store.(failureReader).Failures(ctx, func(checkout.Failure) error { return nil }); err != nil {
			return err
		}
		if _, err := f.Verify(ctx, checkout.VerifyOptions{NoMend: true}); err != nil {
			return err
		}
		return f.Export(ctx, checkout.ExportOptions{WithData: true}, func(checkout.Finished) error { return nil })
	},
	"reprocess": func(f *fixture) error {
		for _, sel := range []checkout.Selection{{Failed: true}, {All: true}, {Keys: []string{"k0"}}} {
			if _, err := f.Count(f.t.Context(), sel); err != nil {
				return err
			}
			out, err := f.Reprocess(f.t.Context(), sel, checkout.ReprocessOptions{By: "me", KeepHistory: true})
			if err != nil {
				return err
			}
			if _, err := f.CancelRun(f.t.Context(), out.Run, func(checkout.Run) error { return nil }); err != nil {
				return err
			}
		}
		return nil
	},
	"pause": func(f *fixture) error {
		if err := f.Pause(f.t.Context(), "me"); err != nil {
			return err
		}
		return f.Resume(f.t.Context())
	},
	"migrate": func(f *fixture) error {
		db, err := database.OpenPostgres(f.url, nil)
		if err != nil {
			return err
		}
		defer database.Close(db)
		m, err := migrations.Postgres(db, f.opts.Schema)
		if err != nil {
			return err
		}
		_, err = m.Down(f.t.Context())
		return err
	},
}

func TestARoleCanDoItsCommandAndNothingElse(t *testing.T) {
	tests := map[string]struct {
		grants []string
		can    []string
	}{
		"looker":      {grantsToLook, []string{"look"}},
		"worker":      {grantsToWork, []string{"work"}},
		"marker":      {grantsToMark, []string{"mark"}},
		"loader":      {grantsToLoad, []string{"load"}},
		"pauser":      {grantsToPause, []string{"pause"}},
		"reprocessor": {grantsToReprocess, []string{"reprocess", "cancel"}},
		"adder":       {grantsToAdd, []string{"add"}},
		"canceller":   {grantsToCancel, []string{"cancel"}},
	}
	f := onPostgres(t, checkout.Options{})
	f.addKeyed("k0", "k1", "k2")
	for role, tt := range tests {
		t.Run(role, func(t *testing.T) {
			as := *f
			as.t = t
			as = *as.as(role, tt.grants)
			for job, do := range jobs {
				err := do(&as)
				switch {
				case slices.Contains(tt.can, job):
					check(t, err)
				case job == "look" && role != "looker":
					// What a role may read in part differs from role to role.
				case err == nil || !isDenied(err):
					t.Errorf("%s: got %v, want a refusal", job, err)
				}
			}
		})
	}
}

// Each grant is needed: without any one of them, the role can't do its job.
func TestNoGrantIsForNothing(t *testing.T) {
	f := onPostgres(t, checkout.Options{})
	f.addKeyed("k0", "k1", "k2")
	for job, grants := range map[string][]string{
		"look": grantsToLook, "work": grantsToWork, "mark": grantsToMark, "load": grantsToLoad, "pause": grantsToPause, "reprocess": grantsToReprocess,
		"add": grantsToAdd, "cancel": grantsToCancel,
	} {
		for i, left := range grants {
			t.Run(fmt.Sprintf("%s without %d", job, i+1), func(t *testing.T) {
				as := *f
				as.t = t
				check(t, f.raw.Exec(`UPDATE windrow.datasets SET is_processed = false, checked_out_by = NULL, available_at = 'epoch'`).Error)
				fewer := slices.Delete(slices.Clone(grants), i, i+1)
				as.url = as.login("short", fewer)
				s, err := checkout.OpenPostgres(t.Context(), as.url, as.opts)
				if err == nil {
					defer s.Close()
					as.store = s
					err = jobs[job](&as)
				}
				if !isDenied(err) {
					t.Errorf("without %q: got %v, want a refusal", left, err)
				}
			})
		}
	}
}

func isDenied(err error) bool {
	var state interface{ SQLState() string }
	return errors.As(err, &state) && state.SQLState() == "42501"
}

func TestMigratingNeedsADatabaseOrASchemaOfOnesOwn(t *testing.T) {
	for name, prepare := range map[string][]string{
		"the right to make schemas": grantsToMigrate,
		"a schema that is there":    {`CREATE SCHEMA windrow AUTHORIZATION {role}`},
	} {
		t.Run(name, func(t *testing.T) {
			f := onPostgres(t, checkout.Options{Schema: "another"})
			f.opts.Schema = ""
			f.url = f.login("migrator", prepare)
			f.migrate()
			f.store = f.open()
			f.add(10)
			analyzed, err := f.Analyze(t.Context())
			check(t, err)
			equal(t, "analyzed by the owner", analyzed, true)
			check(t, jobs["migrate"](f))
		})
	}
}

func TestARoleWithNothingIsToldSo(t *testing.T) {
	f := onPostgres(t, checkout.Options{})
	stranger := f.login("stranger", nil)
	_, err := checkout.OpenPostgres(t.Context(), stranger, f.opts)
	if !isDenied(err) || errors.Is(err, model.ErrUnavailable) || errors.Is(err, model.ErrSchema) {
		t.Fatalf("got %v", err)
	}
}

// The server refuses these only when it carries them out: there is an answer to be
// read, but no row in it.
func TestAnAnswerThatFailsIsAnError(t *testing.T) {
	f := onPostgres(t, checkout.Options{})
	ids := f.add(2)
	claim := f.checkOutOne("w", ids[0])
	poor := f.as("answerless", []string{
		`GRANT USAGE ON SCHEMA windrow TO {role}`,
		`GRANT SELECT ON windrow.schema_version, windrow.job TO {role}`,
	})
	for name, call := range map[string]func() error{
		"look ahead": func() error { _, err := poor.Agenda(t.Context()); return err },
		"check out":  func() error { _, err := poor.CheckOut(t.Context(), "w", lease, 1); return err },
		"check in": func() error {
			_, err := poor.CheckIn(t.Context(), []model.CheckIn{done(claim, `1`)})
			return err
		},
	} {
		if err := call(); !isDenied(err) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestAnalyzeSaysWhenItIsNotPermitted(t *testing.T) {
	f := onPostgres(t, checkout.Options{})
	loader := f.as("loader", grantsToLoad)
	loader.add(10)
	analyzed, err := loader.Analyze(t.Context())
	check(t, err)
	equal(t, "analyzed by another than the owner", analyzed, false)
	analyzed, err = f.Analyze(t.Context())
	check(t, err)
	equal(t, "analyzed by a superuser", analyzed, true)
}
