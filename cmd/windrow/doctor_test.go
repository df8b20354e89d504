package main_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/windrow-go/windrow/internal/pgcluster"
	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
)

// found is a line of doctor --json.
type found struct {
	Severity, Check, What, Why, Cure string
}

func (o outcome) findings() (list []found) {
	o.t.Helper()
	for line := range strings.Lines(o.stdout) {
		var f found
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&f); err != nil {
			o.t.Fatalf("line %q: %v", line, err)
		}
		list = append(list, f)
	}
	return list
}

func TestDoctorOfAHealthyServerExitsWithZero(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	cluster := pgtest.Cluster(t, pgcluster.Options{Fsync: true})
	p.database = cluster.URL("postgres")
	p.run("doctor").wants(1).prints("ERROR    schema: ", "mend   windrow migrate up", "1 error,")
	p.ok("migrate", "up")
	p.load(10)
	p.ok("doctor").wants(0, "database: PostgreSQL").prints("0 errors", "0 warnings", "As they should be:\n", "row security       it hides nothing").lacks("ERROR", "WARNING")
	for _, f := range p.ok("doctor", "--json", "-q").findings() {
		if f.Severity == "error" || f.Severity == "warning" || f.What == "" || f.Check == "" {
			t.Errorf("%+v", f)
		}
	}
}

func TestDoctorPrintsTheWorstFirstAndTheCureAsItIsPasted(t *testing.T) {
	t.Parallel()
	p := newFleet(t)
	b := p.table()
	for _, statement := range []string{
		`DROP INDEX windrow.unprocessed_datasets_idx`,
		`ALTER TABLE windrow.datasets SET (autovacuum_enabled = false)`,
		`ALTER TABLE windrow.datasets SET (fillfactor = 100)`,
	} {
		if err := b.db.Exec(statement).Error; err != nil {
			t.Fatal(err)
		}
	}
	const cure = `CREATE INDEX CONCURRENTLY unprocessed_datasets_idx ON "windrow".datasets (available_at, id) WHERE NOT is_processed;`
	o := p.run("doctor").wants(1)
	o.prints("ERROR    indexes: the index unprocessed_datasets_idx is missing\n", "  why    it is the queue", "  mend   "+cure+"\n")
	last := 0
	for _, words := range []string{"ERROR    indexes", "WARNING  table: autovacuum", "NOTE     table: fillfactor", "As they should be:", "errors, "} {
		at := strings.Index(o.stdout, words)
		if at < last {
			t.Errorf("%q stands before what is worse:\n%s", words, o.stdout)
		}
		last = at
	}
	list := p.run("doctor", "--json").wants(1).findings()
	if list[0].Severity != "error" || list[len(list)-1].Severity != "ok" {
		t.Errorf("the first and the last: %+v, %+v", list[0], list[len(list)-1])
	}
	seen := false
	for _, f := range list {
		seen = seen || f.Check == "indexes" && f.Cure == cure && f.Why != ""
	}
	if !seen {
		t.Errorf("no line with the cure among %+v", list)
	}
}

func TestDoctorOfAFile(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.run("doctor").wants(1, "database: SQLite, windrow.db").prints("ERROR    file: there is no database at windrow.db", "windrow load FILE")
	if files := p.files("*"); len(files) != 0 {
		t.Errorf("files: %v", files)
	}
	p.load(10)
	p.ok("doctor").prints("0 errors, 0 warnings", "integrity", "a quick check found no damage")
	p.ok("doctor", "--json", "--database", "sqlite:windrow.db").prints(`"check":"integrity"`)
	if files := p.files("windrow.db-*"); len(files) != 0 {
		t.Errorf("the doctor left %v", files)
	}
}

func TestDoctorSaysNoPassword(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-w0rd"
	p := newPlainPlace(t)
	good := pgtest.Database(t)
	u, err := url.Parse(good)
	if err != nil {
		t.Fatal(err)
	}
	for name, address := range map[string]string{
		"good":          withPassword(t, good, "postgres", secret),
		"no such role":  withPassword(t, good, "nobody", secret),
		"closed port":   "postgres://me:" + secret + "@127.0.0.1:1/db?connect_timeout=5",
		"bad port":      "postgres://me:" + secret + "@127.0.0.1:port/db",
		"key and value": "host=127.0.0.1 port=" + u.Port() + " user=nobody password=" + secret + " dbname=db sslmode=disable",
	} {
		for _, words := range []string{"doctor", "doctor --json"} {
			p.database = address
			p.run(strings.Fields(words)...).wants(1).lacks(secret).prints("error")
		}
		if t.Failed() {
			t.Fatal(name)
		}
	}
	p.run("doctor", "--database", "mysql://me:"+secret+"@127.0.0.1/db").wants(2).lacks(secret)
}
