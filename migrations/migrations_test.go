package migrations_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
	"github.com/windrow-go/windrow/migrations"
	"github.com/windrow-go/windrow/model"
)

func TestUpDownAndUpAgain(t *testing.T) {
	onEach(t, func(t *testing.T, p place) {
		m := p.migrator()
		wantVersion(t, m, 0)
		for range 2 {
			steps, err := m.Up(t.Context())
			check(t, err)
			equal(t, "steps up", len(steps), migrations.Needed)
			equal(t, "applied", steps[0].Applied, true)
			wantVersion(t, m, migrations.Needed)
			equal(t, "rows of job", p.count("job"), 1)

			steps, err = m.Up(t.Context())
			check(t, err)
			equal(t, "steps when nothing is missing", len(steps), 0)

			for version := int64(migrations.Needed); version > 0; version-- {
				wantVersion(t, m, version)
				steps, err = m.Down(t.Context())
				check(t, err)
				equal(t, "steps down", len(steps), 1)
				equal(t, "version taken back", steps[0].Version, version)
				equal(t, "applied", steps[0].Applied, false)
			}
			wantVersion(t, m, 0)
			if p.db.Exec(`SELECT 1 FROM `+p.table("datasets")).Error == nil {
				t.Fatal("the table is still there")
			}
		}
		steps, err := m.Down(t.Context())
		check(t, err)
		equal(t, "steps when nothing is there", len(steps), 0)
	})
}

// A table of the first version is brought up to date with its rows, and back; what was
// processed before is tallied.
func TestRowsOutliveTheLaterStepsAndTheirWayBack(t *testing.T) {
	onEach(t, func(t *testing.T, p place) {
		m := p.migrator()
		_, err := m.Up(t.Context())
		check(t, err)
		p.downTo(1)
		wantVersion(t, m, 1)
		p.exec(`INSERT INTO ` + p.table("datasets") + ` (data, is_processed, error) VALUES ('3', true, NULL), ('4', true, 'x'), ('5', true, NULL)`)
		p.exec(`INSERT INTO ` + p.table("datasets") + ` (data, last_error) VALUES ('1', 'old'), ('2', 'old')`)
		for range 2 {
			steps, err := m.Up(t.Context())
			check(t, err)
			equal(t, "steps up", len(steps), migrations.Needed-1)
			var refunds []int
			check(t, p.db.Raw(`SELECT refunds FROM `+p.table("datasets")+` WHERE last_error = 'old'`).Scan(&refunds).Error)
			equal(t, "refunds", slices.Equal(refunds, []int{0, 0}), true)
			p.exec(`UPDATE ` + p.table("datasets") + ` SET refunds = 7`)
			p.exec(`INSERT INTO ` + p.table("marks") + ` (id, round, name) VALUES (1, 0, 'mail')`)
			var done, failed int
			check(t, p.db.Raw(`SELECT sum(done), sum(failed) FROM `+p.table("tallies")).Row().Scan(&done, &failed))
			equal(t, "tallies", [2]int{done, failed}, [2]int{2, 1})
			p.downTo(1)
			equal(t, "rows", p.count("datasets"), 5)
		}
	})
}

// The column is added to tables of many millions of rows.
func TestTheLaterStepsRewriteNothing(t *testing.T) {
	p := postgresAt(t, pgtest.Database(t), "windrow")
	m := p.migrator()
	_, err := m.Up(t.Context())
	check(t, err)
	p.downTo(1)
	file := func() (node int) {
		check(t, p.db.Raw(`SELECT pg_relation_filenode('windrow.datasets')`).Scan(&node).Error)
		return node
	}
	before := file()
	_, err = m.Up(t.Context())
	check(t, err)
	equal(t, "the table's file", file(), before)
	p.downTo(1)
	equal(t, "the table's file on the way back", file(), before)
}

func TestDownBeforeAnyUpChangesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, p place) {
		steps, err := p.migrator().Down(t.Context())
		check(t, err)
		equal(t, "steps", len(steps), 0)
		wantVersion(t, p.migrator(), 0)
	})
}

func TestStatusOnlyReads(t *testing.T) {
	onEach(t, func(t *testing.T, p place) {
		m := p.migrator()
		steps, err := m.Status(t.Context())
		check(t, err)
		equal(t, "steps", len(steps), migrations.Needed)
		equal(t, "applied", steps[0].Applied, false)
		wantVersion(t, m, 0)
		if p.path == "" {
			var schemas int
			check(t, p.db.Raw(`SELECT count(*) FROM pg_namespace WHERE nspname = 'windrow'`).Scan(&schemas).Error)
			equal(t, "schemas made by looking", schemas, 0)
		}
		_, err = m.Up(t.Context())
		check(t, err)
		steps, err = m.Status(t.Context())
		check(t, err)
		equal(t, "applied", steps[0].Applied, true)
		equal(t, "name", steps[0].Name, "00001_datasets.sql")
	})
}

func TestCheckNamesTheCommandThatHelps(t *testing.T) {
	onEach(t, func(t *testing.T, p place) {
		m := p.migrator()
		wantSchemaError(t, m)
		_, err := m.Up(t.Context())
		check(t, err)
		check(t, m.Check(t.Context()))
		for range migrations.Needed { // too old, and at last none
			_, err := m.Down(t.Context())
			check(t, err)
			wantSchemaError(t, m)
		}
	})
}

func wantSchemaError(t *testing.T, m *migrations.Migrator) {
	t.Helper()
	err := m.Check(t.Context())
	if !errors.Is(err, model.ErrSchema) {
		t.Fatalf("got %v, want ErrSchema", err)
	}
	if !strings.Contains(err.Error(), "windrow migrate up") {
		t.Fatalf("%q doesn't say what to do", err)
	}
}

// A newer program has migrated the tables; this one still works, and takes
// nothing back that it doesn't know.
func TestANewerSchemaIsAccepted(t *testing.T) {
	onEach(t, func(t *testing.T, p place) {
		m := p.migrator()
		_, err := m.Up(t.Context())
		check(t, err)
		applied := map[bool]string{true: `TRUE`, false: `1`}[p.path == ""]
		p.exec(`INSERT INTO ` + p.table("schema_version") + ` (version_id, is_applied) VALUES (999, ` + applied + `)`)
		wantVersion(t, m, 999)
		check(t, m.Check(t.Context()))
		steps, err := m.Up(t.Context())
		check(t, err)
		equal(t, "steps", len(steps), 0)
		if _, err := m.Down(t.Context()); err == nil || !strings.Contains(err.Error(), "999") {
			t.Fatalf("a step down from an unknown version: %v", err)
		}
		equal(t, "rows of job", p.count("job"), 1)
	})
}

func TestTwoSchemasInOneDatabaseDoNotTouchEachOther(t *testing.T) {
	url := pgtest.Database(t)
	one, two := postgresAt(t, url, "one"), postgresAt(t, url, "two")
	for _, p := range []place{one, two} {
		_, err := p.migrator().Up(t.Context())
		check(t, err)
		p.exec(`INSERT INTO ` + p.table("datasets") + ` (data) VALUES ('1')`)
	}
	var same bool
	check(t, one.db.Raw(`SELECT (SELECT value FROM one.job WHERE name = 'uuid') = (SELECT value FROM two.job WHERE name = 'uuid')`).Scan(&same).Error)
	equal(t, "the jobs have one uuid", same, false)
	one.downAll()
	wantVersion(t, one.migrator(), 0)
	wantVersion(t, two.migrator(), migrations.Needed)
	equal(t, "rows of the other", two.count("datasets"), 1)
	var public int
	check(t, one.db.Raw(`SELECT count(*) FROM pg_class WHERE relnamespace = CAST('public' AS regnamespace)`).Scan(&public).Error)
	equal(t, "things in the schema public", public, 0)
}

func TestSchemaNames(t *testing.T) {
	tests := map[string]struct {
		name string
		ok   bool
	}{
		"the default":         {"windrow", true},
		"with digits":         {"job_2026", true},
		"of 63 characters":    {strings.Repeat("a", 63), true},
		"empty":               {"", false},
		"too long":            {strings.Repeat("a", 64), false},
		"upper case":          {"Windrow", false},
		"beginning by number": {"1job", false},
		"the system's":        {"pg_job", false},
		"with a dot":          {"a.b", false},
		"with a quote":        {`a"; DROP SCHEMA public; --`, false},
		"with a space":        {"a b", false},
		"with a newline":      {"a\n", false},
		"not ASCII":           {"jöb", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := migrations.CheckSchemaName(tt.name)
			equal(t, "accepted", err == nil, tt.ok)
			if tt.ok || tt.name == "" { // an empty one stands for the default
				return
			}
			p := place{t: t, schema: tt.name}
			if _, err := migrations.Postgres(p.db, tt.name); err == nil {
				t.Error("a migrator was made")
			}
		})
	}
}

func TestAnSQLWordIsNoSchema(t *testing.T) {
	for _, word := range []string{"select", "user", "analyze", "left"} { // reserved in either way
		p := postgresAt(t, pgtest.Database(t), word)
		_, err := p.migrator().Up(t.Context())
		if err == nil || !strings.Contains(err.Error(), "choose another") {
			t.Errorf("%s: got %v", word, err)
		}
		var made bool
		check(t, p.db.Raw(`SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = ?)`, word).Scan(&made).Error)
		equal(t, "schema left behind", made, false)
	}
	p := postgresAt(t, pgtest.Database(t), "values") // a word, but not reserved for this use
	_, err := p.migrator().Up(t.Context())
	check(t, err)
	check(t, p.migrator().Check(t.Context()))
}

func TestBothEnginesHaveTheSameMigrations(t *testing.T) {
	names := func(folder string) []string {
		entries, err := os.ReadDir(folder)
		check(t, err)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	postgres, sqlite := names("postgres"), names("sqlite")
	if !slices.Equal(postgres, sqlite) {
		t.Fatalf("postgres has %v, sqlite %v", postgres, sqlite)
	}
	equal(t, "migrations", len(postgres), migrations.Needed)
}

func TestTheTablesHaveTheSameColumnsOnBothEngines(t *testing.T) {
	pg := postgresAt(t, pgtest.Database(t), "windrow")
	lite := sqliteAt(t, t.TempDir()+"/job.db")
	for _, p := range []place{pg, lite} {
		_, err := p.migrator().Up(t.Context())
		check(t, err)
	}
	for _, table := range []string{"datasets", "dataset_keys", "loads", "runs", "job", "marks"} {
		var a, b []string
		check(t, pg.db.Raw(`SELECT column_name FROM information_schema.columns WHERE table_schema = 'windrow' AND table_name = ? ORDER BY ordinal_position`, table).Scan(&a).Error)
		check(t, lite.db.Raw(`SELECT name FROM pragma_table_info(?) ORDER BY cid`, table).Scan(&b).Error)
		if len(a) == 0 || !slices.Equal(a, b) {
			t.Errorf("%s: %v and %v", table, a, b)
		}
	}
}

func wantVersion(t *testing.T, m *migrations.Migrator, want int64) {
	t.Helper()
	got, err := m.Version(t.Context())
	check(t, err)
	equal(t, "version", got, want)
}
