package main_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
)

func TestUsageErrorsExitWithTwo(t *testing.T) {
	t.Parallel()
	p := newPlainPlace(t)
	for words, says := range map[string]string{
		"status --no-such-flag":                  "--no-such-flag",
		"no-such-command":                        "no-such-command",
		"status extra":                           "extra",
		"work":                                   "exactly one of",
		"work --jq . --exec cat":                 "exactly one of",
		"work --jq . extra":                      "extra",
		"work --jq . --lease 1ms":                "--lease",
		"work --jq . --lease soon":               "--lease",
		"work --exec-json --jq .":                "--exec-json",
		"work --jq .[":                           "--jq",
		"work -- no-such-program-anywhere":       "no-such-program-anywhere",
		"work --jq . --max-failures 101%":        "--max-failures",
		"load":                                   "load which file? Name one",
		"load x.csv --format yaml":               "--format",
		"load x.csv --delimiter ab":              "--delimiter",
		"export --state most":                    "--state",
		"export -o windrow.db":                   "same file",
		"load windrow.db --rejects ./windrow.db": "same file",
		"run windrow.db --jq . -o windrow.db":    "same file",
		"show":                                   "--id",
		"show A --id 1":                          "--id",
		"reprocess":                              "Give --failed, --error",
		"migrate":                                "up, down or status",
		"status --log-level loud":                "--log-level",
		"status --database mysql://u:secret@h/d": "postgres://",
	} {
		// An existing database, so that only the usage is wrong.
		if !p.has("windrow.db") {
			p.load(1)
		}
		p.run(strings.Fields(words)...).wants(2, says).lacks("secret")
	}
}

func TestHelpVersionAndCompletionWork(t *testing.T) {
	t.Parallel()
	p := newPlainPlace(t)
	p.ok("version").prints("windrow ")
	p.ok("--help").prints("run", "load", "work", "status", "errors")
	help := p.ok("work", "--help").prints("[$WINDROW_LEASE]", "[$WINDROW_CONCURRENCY]", "[$WINDROW_DATABASE_URL]", "--until-empty")
	help.lacks("WINDROW_HELP")
	p.ok("reprocess", "--help").lacks("WINDROW_ALL", "WINDROW_YES", "WINDROW_FAILED")
	for _, shell := range []string{"bash", "zsh", "fish"} {
		p.ok("completion", shell).prints("windrow")
	}
	p.write("complete.sh", p.ok("completion", "bash").stdout)
	p.ok("__complete", "wo").prints("work")
	if files := p.files("*"); len(files) != 1 {
		t.Errorf("files: %v, want the script alone", files)
	}
}

func TestFlagsComeFromTheEnvironmentUnlessTyped(t *testing.T) {
	t.Parallel()
	p := newPlainPlace(t)
	p.load(2)
	p.env = []string{"WINDROW_LEASE=1ms", "WINDROW_JQ=" + doubling}
	p.run("work", "--until-empty").wants(2, "--lease 1ms")
	p.env = []string{"WINDROW_LEASE=tomorrow"}
	p.run("work", "--until-empty", "--jq", ".").wants(2, "WINDROW_LEASE")
	p.env = []string{"WINDROW_LEASE=1ms", "WINDROW_JQ=" + doubling, "WINDROW_UNTIL_EMPTY=true"}
	p.ok("work", "--lease", "3s").wants(0, `"lease":"3s"`, "2 done")
	// What destroys or repeats something has to be typed.
	p.env = []string{"WINDROW_ALL=true", "WINDROW_YES=true", "WINDROW_FAILED=true"}
	p.run("reprocess").wants(2)
	p.env = []string{"WINDROW_FRESH=true", "WINDROW_AGAIN=true"}
	p.ok("load", "rows.jsonl").wants(0, "already loaded")
}

func TestTheDatabaseIsTypedOrFromTheEnvironmentOrTheDefault(t *testing.T) {
	t.Parallel()
	p := newPlainPlace(t)
	p.write("one.jsonl", numbers(1))
	p.write("two.jsonl", numbers(2))
	p.write("three.jsonl", numbers(3))
	p.ok("load", "one.jsonl").wants(0, "database: SQLite, new file windrow.db")
	p.database = "environment.db"
	p.ok("load", "two.jsonl").wants(0, "new file environment.db")
	p.ok("load", "three.jsonl", "--database", "typed.db").wants(0, "new file typed.db")
	p.ok("status", "--json").prints(`"total":2`)
	p.ok("status", "--json", "--database", "typed.db").prints(`"total":3`)
	p.ok("status", "--json", "--database", "sqlite:typed.db").prints(`"total":3`)
	p.database = ""
	p.env = []string{"DATABASE_URL=environment.db"} // some application's
	p.ok("status", "--json").prints(`"total":1`)
}

func TestReadingCommandsNeverMakeADatabase(t *testing.T) {
	t.Parallel()
	p := newPlainPlace(t)
	for _, words := range []string{
		"status", "status --json", "show A", "show --id 1", "errors", "errors --json", "export", "export -o out.jsonl", "reprocess --failed",
		"reprocess --all --dry-run", "work --jq . --until-empty", "migrate status", "migrate down --yes",
		"status --database sqlite:none.db",
	} {
		p.run(strings.Fields(words)...).wants(1, "there is no database at")
	}
	if files := p.files("*"); len(files) != 0 {
		t.Errorf("files: %v", files)
	}
	p.run("status", "--database", p.dir).wants(1, "is a folder", "--database")
	p.write("text.db", strings.Repeat("not a database\n", 100))
	p.run("status", "--database", "text.db").wants(1, "not an SQLite database")
}

func TestAReadOnlyFolderIsSaid(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		// Nothing is forbidden to root but what the system itself forbids.
		p := newPlainPlace(t)
		p.write("rows.jsonl", numbers(1))
		p.run("load", "rows.jsonl", "--database", "/proc/windrow.db").wants(1, "--database")
		return
	}
	p := newPlainPlace(t)
	p.write("rows.jsonl", numbers(1))
	if err := os.Mkdir(p.path("closed"), 0o555); err != nil {
		t.Fatal(err)
	}
	p.run("load", "rows.jsonl", "--database", filepath.Join("closed", "windrow.db")).wants(1, "can't be written to", "--database")
}

func TestMissingTablesNameTheCommandThatMakesThem(t *testing.T) {
	t.Parallel()
	p := newPlainPlace(t)
	p.database = pgtest.Database(t)
	p.write("rows.jsonl", numbers(1))
	for _, words := range []string{"status", "load rows.jsonl", "work --jq . --until-empty", "export", "show A", "errors", "reprocess --failed", "run rows.jsonl --jq ."} {
		p.run(strings.Fields(words)...).wants(1, "windrow migrate up")
	}
	p.ok("migrate", "status").prints("missing")
	p.ok("migrate", "up").wants(0, "applied")
	p.ok("migrate", "up").wants(0, "up to date")
	p.ok("migrate", "status", "--json").prints(`"applied":true`)
	p.ok("load", "rows.jsonl")
	p.run("status", "--schema", "another").wants(1, "windrow migrate up", "another")
	p.ok("migrate", "up", "--schema", "another")
	p.ok("status", "--schema", "another", "--json").prints(`"total":0`)
	p.run("migrate", "down").wants(2, "--yes")
	p.ok("migrate", "down", "--yes").wants(0, "took back")
}

func TestNoPasswordIsEverSaid(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-w0rd"
	p := newPlainPlace(t)
	p.write("rows.jsonl", numbers(1))
	good := pgtest.Database(t)
	for name, address := range map[string]string{
		"good":           withPassword(t, good, "postgres", secret),
		"no such role":   withPassword(t, good, "nobody", secret),
		"no such host":   "postgres://me:" + secret + "@no-such-host.invalid/db",
		"closed port":    "postgres://me:" + secret + "@127.0.0.1:1/db?connect_timeout=5",
		"bad port":       "postgres://me:" + secret + "@127.0.0.1:port/db",
		"bad escape":     "postgres://me:" + secret + "%zz@127.0.0.1/db",
		"bad setting":    "postgres://me:" + secret + "@127.0.0.1/db?sslmode=perhaps",
		"key and value":  "host=127.0.0.1 port=1 user=me password=" + secret + " dbname=db",
		"bad key, value": "host=127.0.0.1 port=x password='" + secret,
		"another kind":   "mysql://me:" + secret + "@127.0.0.1/db",
	} {
		t.Run(name, func(t *testing.T) {
			for _, words := range []string{"migrate up", "run rows.jsonl --jq ."} {
				args := append(strings.Fields(words), "--log-level", "debug", "--database", address)
				if o := p.run(args...).lacks(secret); o.code == 0 && name != "good" {
					t.Errorf("windrow %q succeeded", words)
				}
			}
			p.env = []string{"WINDROW_DATABASE_URL=" + address}
			p.run("status").lacks(secret)
			p.env = nil
		})
	}
	if files := p.files("*.db*"); len(files) != 0 {
		t.Errorf("an address was taken for a file: %v", files)
	}
}

func TestAHandlersEnvironmentHasTheRowAndNoDatabase(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		p.write("rows.jsonl", `{"name":"a b"}`+"\n")
		p.ok("load", "rows.jsonl", "--key", "name")
		p.env = []string{"WINDROW_LEASE=9s", "PGPASSWORD=s3cr3t", "MINE=kept"}
		p.ok("work", "--until-empty", "--exec", `env > environment; cat`)
		got := p.read("environment")
		for _, want := range []string{"WINDROW_ROW_ID=1\n", "WINDROW_ROW_KEY=a b\n", "WINDROW_ROW_ATTEMPT=1\n", "WINDROW_ROW_IDEMPOTENCY_KEY=", "/1/0\n", "MINE=kept\n"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is missing in %s", want, got)
			}
		}
		for _, forbidden := range []string{"WINDROW_DATABASE_URL", "WINDROW_LEASE", "PGPASSWORD"} {
			if strings.Contains(got, forbidden) {
				t.Errorf("%s is in a handler's environment", forbidden)
			}
		}
	})
}

func TestAWordOfTheRowIsOneArgument(t *testing.T) {
	t.Parallel()
	p := newPlainPlace(t)
	p.write("rows.jsonl", `{"name":"a b; touch broken","n":7}`+"\n")
	p.ok("load", "rows.jsonl")
	p.ok("work", "--until-empty", "--", "printf", "%s|", "{name}", "n={n}")
	if got := text(p.table().rows("true")[0].Result); got != `"a b; touch broken|n=7|"` {
		t.Errorf("result %s", got)
	}
	if p.has("broken") {
		t.Error("a field was run by a shell")
	}
}

// A server that takes connections and says nothing must not hold a stop up.
func TestAStopWhileTheServerIsSilent(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	p := newPlainPlace(t)
	p.database = "postgres://me@" + silent.Addr().String() + "/db?sslmode=disable&connect_timeout=60"
	for args, code := range map[string]int{"work --jq .": 0, "work --jq . --until-empty": 143, "status": 143} {
		waiting := p.start(strings.Fields(args)...)
		conn, err := silent.Accept()
		if err != nil {
			t.Fatal(err)
		}
		waiting.signal(syscall.SIGTERM)
		if o := waiting.end().wants(code); o.took > 10*time.Second {
			t.Errorf("%s took %v to stop", args, o.took)
		}
		conn.Close()
	}
}
