package main_test

import (
	"database/sql"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/libtnb/sqlite"

	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
)

// badLines are n lines that are no JSON, each with its number.
func badLines(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "{bad %d\n", i)
	}
	return b.String()
}

// pipe starts the program with a pipe on its stdin that stays open.
func (p *place) pipe(args ...string) (*process, io.WriteCloser) {
	p.t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		p.t.Fatal(err)
	}
	run := &process{t: p.t, cmd: exec.Command(program, args...), ended: make(chan struct{})}
	run.cmd.Dir, run.cmd.Env, run.cmd.Stdin = p.dir, p.environment(), reader
	run.cmd.Stdout, run.cmd.Stderr = &run.stdout, &run.stderr
	run.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := run.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	reader.Close()
	go func() {
		_ = run.cmd.Wait() // the code tells
		close(run.ended)
	}()
	p.t.Cleanup(func() {
		writer.Close()
		run.cleanUp()
	})
	return run, writer
}

// Bad records alone are stored as progress too: a load of them that is killed goes on,
// and repeats at most one chunk's rejects.
func TestALoadOfBadRecordsGoesOnWhereItWasKilled(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	const n, chunk = 25_000, 10_000
	run, input := p.pipe("load", "-", "--format", "jsonl", "--rejects", "bad.jsonl")
	if _, err := io.WriteString(input, badLines(n)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "two chunks are stored", func() bool {
		return p.has("windrow.db") && p.file("windrow.db").loaded() == 2*chunk
	})
	run.kill()
	p.feed(badLines(n), "load", "-", "--format", "jsonl", "--rejects", "bad.jsonl").end().wants(3, "25,000 bad records are in bad.jsonl")
	rejects := strings.Count(p.read("bad.jsonl"), "\n")
	if rejects < n || rejects > n+chunk {
		t.Errorf("%d rejects of %d bad records", rejects, n)
	}
}

// loaded is how many records the newest load has read.
func (b *table) loaded() int64 {
	var n int64
	if b.db.Raw(`SELECT coalesce(max(records), 0) FROM loads`).Scan(&n).Error != nil {
		return 0 // the table is not there yet
	}
	return n
}

func TestAnIdleStdinDoesNotHoldAStopUp(t *testing.T) {
	t.Parallel()
	const rows, chunk = 10_003, 10_000 // the last three are waited with for more
	for args, code := range map[string]int{"load - --format lines": 143, "run - --jq .": 130, "run - --jq . --try 10009": 143} {
		p := newPlace(t)
		run, input := p.pipe(strings.Fields(args)...)
		if _, err := io.WriteString(input, numbers(rows)); err != nil {
			t.Fatal(err)
		}
		eventually(t, args+" waits for more", func() bool {
			for _, file := range p.files("*.db") {
				if p.file(file).loaded() == chunk {
					return true
				}
			}
			return contains(run.stdout.String(), "row 9000")
		})
		run.signal(syscall.Signal(code - 128))
		says := map[int]string{143: "stopped by SIGTERM", 130: "stopped by SIGINT"}[code]
		if o := run.end().wants(code, says); o.took > 10*time.Second {
			t.Errorf("%s took %v to stop", args, o.took)
		}
	}
}

func TestAnotherProgramsDatabaseIsLeftAlone(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("rows.jsonl", numbers(1))
	db, err := sql.Open(sqlite.DriverName, "file:"+p.path("app.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`CREATE TABLE schema_version (n); CREATE TABLE accounts (n)`); err != nil {
		t.Fatal(err)
	}
	db.Close()
	before := p.read("app.db")
	for _, words := range []string{"status", "export", "work --jq .", "load rows.jsonl", "migrate up", "run rows.jsonl --jq .", "run rows.jsonl --jq . --fresh"} {
		p.run(append(strings.Fields(words), "--database", "app.db")...).wants(1, "app.db is some other program's database", "--database")
	}
	if p.read("app.db") != before || len(p.files("app.db?*")) > 1 { // the lock file alone
		t.Errorf("it was changed: %v", p.files("app.db*"))
	}
	p.write("empty.db", "")
	p.run("status", "--database", "empty.db").wants(1, "empty.db holds no windrow tables", "load some rows first")
	p.ok("load", "rows.jsonl", "--database", "empty.db")
}

func TestOutputsAreLookedAtBeforeTheWork(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.load(1)
	for words, says := range map[string]string{
		"export -o nodir/x.jsonl":                   "--output nodir/x.jsonl: there is no folder nodir",
		"export --errors nodir/x.jsonl":             "--errors nodir/x.jsonl: there is no folder nodir",
		"export -o .":                               "is a folder",
		"load rows.jsonl --rejects nodir/bad.jsonl": "there is no folder nodir",
		"run rows.jsonl --jq . -o nodir/x.jsonl":    "there is no folder nodir",
		"export -o x.parquet":                       "--output x.parquet: .jsonl or .csv is written",
		"export -o x.json":                          ".jsonl or .csv",
		"run rows.jsonl --jq . -o x.tsv":            ".jsonl or .csv",
		"run rows.jsonl --jq . --errors x.txt":      "--errors x.txt: .jsonl or .csv",
	} {
		code := 1
		if contains(says, ".jsonl or .csv") {
			code = 2
		}
		p.run(strings.Fields(words)...).wants(code, says)
	}
	p.ok("export", "-o", "x.json", "--output-format", "jsonl")
	p.ok("export", "-o", "/dev/null")
	p.ok("export", "-o", "results")
	want := []string{"results", "rows.jsonl", "windrow.db", "x.json"}
	if files := p.files("*"); !slices.Equal(slices.DeleteFunc(files, isLock), want) {
		t.Errorf("files: %v, want %v", files, want)
	}
	if left := p.files(".*"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func isLock(name string) bool { return strings.HasSuffix(name, ".lock") }

func TestATypedHandlerWinsOverTheEnvironments(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.load(1)
	p.env = []string{"WINDROW_JQ=error", "WINDROW_ARG=a=b", "WINDROW_FORMAT=jsonl"}
	p.ok("work", "--until-empty", "--exec", "cat").wants(0, "1 done")
	p.ok("export").prints(`"result":{"n":1}`)
	p.ok("reprocess", "--all", "--yes").prints("1 row put back")
	p.ok("work", "--until-empty", "--", "cat").wants(0, "1 done")
	p.ok("reprocess", "--all", "--yes")
	p.env = []string{"WINDROW_EXEC=false", "WINDROW_EXEC_JSON=true"}
	p.ok("work", "--until-empty", "--jq", ".").wants(0, "1 done")
	p.run("work", "--jq", ".", "--exec", "cat").wants(2, "exactly one of")
}

func TestTryKnowsKeysAndPassesBadRecordsOver(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("rows.jsonl", `{"k":"a"}`+"\n{bad\n"+`{"k":"b"}`+"\n")
	args := []string{"run", "rows.jsonl", "--key", "k", "--try", "2", "--exec", `printf %s "($WINDROW_ROW_KEY)"`}
	p.run(args...).wants(1, "line 2")
	p.ok(append(args, "--rejects", "bad.jsonl")...).wants(0, "passed over", "line 2").prints(`"(a)"`, `"(b)"`)
	if p.has("bad.jsonl") {
		t.Error("a trial wrote rejects")
	}
}

func TestWhatIsSaidOfACallThatIsWrong(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("one.csv", airports)
	p.run("run", "one.csv", "cat").wants(2, `unexpected argument "cat": a command to run stands behind --`)
	p.run("load").wants(2, "load which file?")
	for _, command := range []string{"run one.csv --jq .", "migrate up", "status"} {
		p.run(append(strings.Fields(command), "--schema", "No")...).wants(2, "--schema", `"No"`)
	}
	p.run("export", "--state", "most").wants(2, "--state") // though there is no database
	p.run("export", "--output-format", "xml").wants(2, "--output-format xml")
}

func TestARunSpeaksInSentences(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("rows.jsonl", numbers(1))
	for range 2 {
		o := p.ok("run", "rows.jsonl", "--jq", ".", "-o", "-").lacks(`"working"`, `"stopped"`, " 1 rows")
		o.wants(0, "the one row is finished", "results on standard output").prints(`"id":1`)
	}
	p.ok("run", "rows.jsonl", "--jq", ".", "--fresh", "--log-level", "debug").wants(0, `"working"`)
}

func TestConnectionErrorsAreShort(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	good := pgtest.Database(t)
	p.database = withPassword(t, good, "nosuch", "s3cr3t")
	o := p.run("status").wants(1, "can't connect to nosuch@", `role "nosuch" does not exist`).lacks("s3cr3t", "TLS", "SQLSTATE")
	if n := strings.Count(o.stderr, "does not exist"); n != 1 {
		t.Errorf("the reason is said %d times: %s", n, o.stderr)
	}
	p.database = "postgres://me:s3cr3t@127.0.0.1:1/db"
	o = p.run("status").wants(1, "can't connect to me@127.0.0.1:1/db: connection refused").lacks("s3cr3t")
	if n := strings.Count(o.stderr, "refused"); n != 1 {
		t.Errorf("the reason is said %d times: %s", n, o.stderr)
	}
	p.database = good
	o = p.run("status", "--schema", "w2").wants(1, `schema "w2" has no windrow tables; make them with: windrow migrate up --schema w2`)
	o.lacks("missing or too old")
}

// A folder that nothing may be written to, which root can only find in /proc.
func TestAClosedFolderIsFoundFirst(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("rows.jsonl", numbers(1))
	closed := "/proc"
	if os.Geteuid() != 0 {
		closed = p.path("closed")
		if err := os.Mkdir(closed, 0o555); err != nil {
			t.Fatal(err)
		}
	}
	p.run("run", "rows.jsonl", "--jq", ".", "-o", filepath.Join(closed, "x.jsonl")).wants(1, "--output", "can't be written")
	if p.has("rows.windrow.db") {
		t.Error("the work was begun")
	}
}
