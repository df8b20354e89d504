package doctor_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/libtnb/sqlite"

	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/internal/doctor"
	"github.com/windrow-go/windrow/internal/pgcluster"
	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
	"github.com/windrow-go/windrow/migrations"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(holdVariable); path != "" {
		os.Exit(hold(path, os.Getenv(holdVariable+"_BY")))
	}
	os.Exit(pgtest.Run(m))
}

// job is a migrated job on PostgreSQL, and a way in for what spoils it.
type job struct {
	t    *testing.T
	url  string
	conn *pgx.Conn
}

// template is made once: a database with windrow's tables, which tests copy.
var template sync.Once

func newJob(t *testing.T) *job {
	t.Helper()
	const name = "doctor_template"
	template.Do(func() {
		cluster := pgtest.Shared(t)
		check(t, cluster.CreateDatabase(t.Context(), name, ""))
		migrate(t, cluster.URL(name))
	})
	return jobAt(t, pgtest.Clone(t, name))
}

// newServer is a job on a server of its own.
func newServer(t *testing.T, options pgcluster.Options) *job {
	t.Helper()
	cluster := pgtest.Cluster(t, options)
	check(t, cluster.CreateDatabase(t.Context(), "job", ""))
	migrate(t, cluster.URL("job"))
	return jobAt(t, cluster.URL("job"))
}

func jobAt(t *testing.T, url string) *job {
	t.Helper()
	return &job{t: t, url: url, conn: connect(t, url)}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	check(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // cut off already, in some tests
	return conn
}

func migrate(t *testing.T, url string) {
	t.Helper()
	db, err := database.OpenPostgres(url, nil)
	check(t, err)
	defer database.Close(db)
	migrator, err := migrations.Postgres(db, "")
	check(t, err)
	_, err = migrator.Up(t.Context())
	check(t, err)
}

func (j *job) exec(statements ...string) {
	j.t.Helper()
	for _, s := range statements {
		if _, err := j.conn.Exec(context.WithoutCancel(j.t.Context()), s); err != nil {
			j.t.Fatalf("%s: %v", s, err)
		}
	}
}

// look asks the doctor, as the role of the url.
func (j *job) look(url string, opts doctor.Options) report {
	j.t.Helper()
	return report{j.t, doctor.Postgres(j.t.Context(), url, opts)}
}

func (j *job) report() report {
	j.t.Helper()
	return j.look(j.url, doctor.Options{})
}

// cure pastes what the finding says, and wants the check to be fine then.
func (j *job) cure(f doctor.Finding) {
	j.t.Helper()
	for line := range strings.Lines(f.Cure) {
		statement, _, _ := strings.Cut(line, "--")
		if strings.TrimSpace(statement) != "" {
			j.exec(statement)
		}
	}
	j.only(f.Check).fine(f.Check)
}

// only makes one check, and those that it needs.
func (j *job) only(name string) report {
	j.t.Helper()
	return report{j.t, doctor.Only(j.t.Context(), j.url, doctor.Options{}, name)}
}

// report is what the doctor found.
type report struct {
	t        *testing.T
	findings []doctor.Finding
}

// wants returns the finding of a check with that severity, in which these words stand.
func (r report) wants(name string, severity doctor.Severity, words ...string) doctor.Finding {
	r.t.Helper()
	for _, f := range r.findings {
		if f.Check == name && f.Severity == severity && hasAll(f, words) {
			if severity != doctor.OK && f.Why == "" {
				r.t.Errorf("%s: %q has no why", name, f.What)
			}
			return f
		}
	}
	r.t.Fatalf("no %s of %q with %q among:\n%s", severity, name, words, r)
	return doctor.Finding{}
}

func hasAll(f doctor.Finding, words []string) bool {
	for _, w := range words {
		if !strings.Contains(f.What+"\n"+f.Why+"\n"+f.Cure, w) {
			return false
		}
	}
	return true
}

// fine wants nothing to be wrong with these checks.
func (r report) fine(names ...string) {
	r.t.Helper()
	for _, name := range names {
		seen := false
		for _, f := range r.findings {
			if f.Check == name {
				seen = true
				if f.Severity != doctor.OK {
					r.t.Errorf("%s is not fine: %s: %s", name, f.Severity, f.What)
				}
			}
		}
		if !seen {
			r.t.Errorf("%q was not looked at:\n%s", name, r)
		}
	}
}

func (r report) String() string {
	var b strings.Builder
	for _, f := range r.findings {
		fmt.Fprintf(&b, "%s %s: %s [%s] {%s}\n", f.Severity, f.Check, f.What, f.Why, f.Cure)
	}
	return b.String()
}

// holdVariable makes the test program play another process that holds a lock on the
// file which it names, until its stdin ends.
const holdVariable = "DOCTOR_TEST_HOLD"

func hold(path, statement string) int {
	db, err := sql.Open(sqlite.DriverName, "file:"+path+"?_busy_timeout=10000")
	if err == nil {
		db.SetMaxOpenConns(1)
		for _, s := range strings.Split(statement, ";") {
			if err == nil {
				_, err = db.Exec(s)
			}
		}
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("held")
	bufio.NewReader(os.Stdin).ReadString('\n')
	return 0
}

// holder starts another process that holds what the statements take, and returns its
// id and what ends it.
func holder(t *testing.T, path, statements string) (pid int, end func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holdVariable+"="+path, holdVariable+"_BY="+statements)
	in, err := cmd.StdinPipe()
	check(t, err)
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	end = sync.OnceFunc(func() {
		in.Close()
		_ = cmd.Wait()
	})
	t.Cleanup(end)
	if said, err := bufio.NewReader(out).ReadString('\n'); err != nil || said != "held\n" {
		t.Fatalf("the holder said %q: %v", said, err)
	}
	return cmd.Process.Pid, end
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// apart is a clock that is wrong by d.
func apart(d time.Duration) func() time.Time {
	return func() time.Time { return time.Now().Add(d) }
}
