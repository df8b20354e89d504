package main_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pythonChild answers each row with the double of its n.
const pythonChild = `import json, sys
for line in sys.stdin:
    row = json.loads(line)
    print(json.dumps({"id": row["id"], "result": {"double": 2 * row["data"]["n"]}}), flush=True)
`

// dear answers each row, and says that it has cost 1.
const dear = `while IFS= read -r line; do id=${line#*:} id=${id%%,*}; printf '{"id":%s,"result":1,"cost":1}\n' "$id"; done`

// doubled counts the rows with the right result after one try.
func doubled(b *table) string {
	double, n := "json_extract(result, '$.double')", "json_extract(data, '$.n')"
	if b.onPostgres() {
		double, n = "CAST(result->>'double' AS int)", "CAST(data->>'n' AS int)"
	}
	return "is_processed AND error IS NULL AND attempts = 1 AND " + double + " = 2 * " + n
}

// jobTable is the table of windrow run rows.jsonl.
func (p *place) jobTable() *table {
	p.t.Helper()
	if p.database == "" {
		return p.file("rows.windrow.db")
	}
	return p.table()
}

// mark is a variable of the place's environment by which its processes are known.
func (p *place) mark() string { return "HANDLERS_TEST_PLACE=" + p.dir }

// marked puts the mark on what the place runs from now on.
func marked(p *place) *place {
	p.env = append(p.env, p.mark())
	return p
}

// processes are those that carry the place's mark and are not over: the program and
// whatever it has started. Without Linux's /proc there is nothing to be seen.
func (p *place) processes() []string {
	var found []string
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		env, err := os.ReadFile(path)
		if err != nil || !slices.Contains(strings.Split(string(env), "\x00"), p.mark()) {
			continue
		}
		if line, err := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline")); err == nil && len(line) > 0 {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

// wantsAlone checks that no process is left of what the place has run.
func (p *place) wantsAlone() {
	p.t.Helper()
	if left := p.processes(); len(left) > 0 {
		p.t.Errorf("processes are left: %q", left)
	}
}

func TestAStreamWorksEveryRowAndLeavesNobodyBehind(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3")
	}
	onEachEngine(t, func(t *testing.T, p *place) {
		for _, flags := range [][]string{nil, {"--stream-shared"}} {
			marked(p).write("child.py", pythonChild)
			p.write("rows.jsonl", numbers(200))
			args := append([]string{"run", "rows.jsonl", "-j", "2", "--stream", "python3 child.py; exit $?"}, flags...)
			if flags != nil && p.database == "" {
				args = append(args, "--fresh")
			}
			p.ok(args...).wants(0, "200 done, 0 failed")
			p.wantsAlone()
			b := p.jobTable()
			b.wants(map[string]int{doubled(b): 200})
			if p.database != "" {
				return // a job's results are there, and --fresh is for files
			}
		}
	})
}

func TestAStreamStoppedInTheMiddleLeavesNobodyBehind(t *testing.T) {
	t.Parallel()
	children := map[string]string{
		"obedient": `while IFS= read -r line; do echo begun >> begun; sleep 1000; done`,
		"stubborn": `trap '' TERM; sleep 1000 & while IFS= read -r line; do echo begun >> begun; while :; do sleep 1; done; done`,
	}
	for name, child := range children {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := marked(newPlace(t))
			p.write("rows.jsonl", numbers(20))
			run := p.start("run", "rows.jsonl", "-j", "2", "--grace", "100ms", "--stream", child)
			eventually(t, "two rows are begun", func() bool { return len(p.lines("begun")) == 2 })
			if runtime.GOOS == "linux" && len(p.processes()) < 3 {
				t.Fatalf("only %q are seen: the search for what is left finds nothing", p.processes())
			}
			if err := run.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if o := run.end().wants(143, "the same command goes on from here"); o.took > 15*time.Second {
				t.Errorf("the stop took %v", o.took)
			}
			p.wantsAlone()
			p.jobTable().wants(map[string]int{"NOT is_processed AND checked_out_by IS NULL AND attempts = 0 AND losses = 0": 20})
		})
	}
}

// doublingService is a service for one row at a time.
func doublingService(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	n, err := strconv.Atoi(strings.Trim(string(body), `{"n: }`))
	if err != nil || r.Header.Get("Idempotency-Key") == "" || r.Header.Get("Windrow-Attempt") != "1" {
		http.Error(w, fmt.Sprintf("%s with %v", body, r.Header), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"double":%d}`, 2*n)
}

func serve(t *testing.T, handle http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return server
}

func TestAServiceWorksEveryRow(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		server := serve(t, doublingService)
		p.write("rows.jsonl", numbers(200))
		p.ok("run", "rows.jsonl", "-j", "4", "--http", server.URL).wants(0, "200 done, 0 failed")
		b := p.jobTable()
		b.wants(map[string]int{doubled(b): 200})
	})
}

func TestAServiceOfBatchesIsAskedForManyRowsAtOnce(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		var asked requests
		server := serve(t, asked.answerBatch)
		p.write("rows.jsonl", numbers(200))
		p.run("run", "rows.jsonl", "-j", "2", "--http", server.URL, "--http-batch", "20", "--batch-wait", "200ms").
			wants(3, "199 done, 1 failed")
		b := p.jobTable()
		b.wants(map[string]int{doubled(b): 199, "error = 'thirteen' AND attempts = 1": 1})
		if calls, largest := asked.counts(); calls > 60 || largest != 20 {
			t.Errorf("%d requests of up to %d rows for 200 rows, want about 10 of 20", calls, largest)
		}
	})
}

func TestASecretOfAHeaderFileIsNowhereToBeSeen(t *testing.T) {
	const secret, second = "s3cr3t-t0ken-value", "an0ther-s3cret"
	onEachEngine(t, func(t *testing.T, p *place) {
		server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer "+secret || r.URL.Query().Get("key") != second {
				http.Error(w, "who are you?", http.StatusTeapot)
				return
			}
			status := []int{http.StatusInternalServerError, http.StatusForbidden}[len(r.Header.Get("Windrow-Row-Id"))%2]
			http.Error(w, "not with Bearer "+secret+" and "+second, status)
		})
		p.write("rows.jsonl", numbers(12))
		p.write("secret.headers", "# the token\n\nAuthorization: Bearer "+secret+"\n")
		o := p.run("run", "rows.jsonl", "--http", server.URL+"/?key="+second, "--header-file", "secret.headers", "--max-failures", "none",
			"--log-level", "debug", "--retry-delay", "1ms", "--max-attempts", "2", "--errors", "errors.jsonl")
		o.wants(3, "12 failed", "not with *** and ***").lacks(secret, second, "who are you")
		p.jobTable().wants(map[string]int{"error LIKE '%not with *** and ***%'": 12})
		for _, said := range []string{p.stored(), p.read("errors.jsonl"), p.ok("errors", "--database", p.jobAddress()).stdout} {
			if strings.Contains(said, secret) || strings.Contains(said, second) {
				t.Errorf("the secret is in %s", clip(said))
			}
		}
	})
}

// jobAddress is the database of windrow run rows.jsonl.
func (p *place) jobAddress() string {
	if p.database != "" {
		return p.database
	}
	return "rows.windrow.db"
}

// stored is all that the database of windrow run rows.jsonl holds.
func (p *place) stored() string {
	p.t.Helper()
	var all bytes.Buffer
	if p.database == "" {
		for _, name := range p.files("rows.windrow.db*") {
			all.WriteString(p.read(name))
		}
		return all.String()
	}
	b := p.table()
	var names []string
	if err := b.db.Raw(`SELECT table_name FROM information_schema.tables WHERE table_schema = 'windrow'`).Scan(&names).Error; err != nil || len(names) < 2 {
		p.t.Fatalf("tables %v, %v", names, err)
	}
	for _, name := range names {
		var rows []string
		if err := b.db.Raw(`SELECT CAST(t AS text) FROM windrow."` + name + `" AS t`).Scan(&rows).Error; err != nil {
			p.t.Fatal(err)
		}
		all.WriteString(strings.Join(rows, "\n"))
	}
	return all.String()
}

func TestFlagsOfAnotherHandlerAndGarbageAreUsageErrors(t *testing.T) {
	t.Parallel()
	p := newPlainPlace(t)
	p.load(1)
	for words, says := range map[string]string{
		"--jq . --stream-shared":                          "--stream-shared is for --stream",
		"--jq . --http-batch 5":                           "--http-batch",
		"--exec cat --header a:b":                         "--header",
		"--exec cat --header-file rows.jsonl":             "--header-file",
		"--stream cat --http-ca rows.jsonl":               "--http-ca",
		"--stream cat --output-dir .":                     "--output-dir is for commands",
		"--jq . --output-dir .":                           "--output-dir is for commands",
		"--http http://127.0.0.1:1 --exec-json":           "--exec-json is for commands",
		"--http http://127.0.0.1:1 --arg a=b":             "--arg",
		"--http http://127.0.0.1:1 --stream cat":          "exactly one of",
		"--stream cat -- cat":                             "exactly one of",
		"--http http://127.0.0.1:1 --batch-wait 1s":       "--batch-wait is for --http-batch",
		"--http http://127.0.0.1:1 --http-batch -1":       "--http-batch",
		"--http ftp://127.0.0.1":                          "--http",
		"--http http://127.0.0.1:1 --header-file none":    "none",
		"--http http://127.0.0.1:1 --header nocolon":      "--http",
		"--http http://127.0.0.1:1 --http-ca rows.jsonl":  "rows.jsonl",
		"--exec cat --output-dir none":                    "output directory",
		"--exec cat --output-dir rows.jsonl":              "not a directory",
		"--jq . --retry-delay soon":                       "--retry-delay soon",
		"--jq . --retry-delay 1s..":                       "--retry-delay 1s..",
		"--jq . --retry-delay 0s..1s":                     "--retry-delay 0s..1s",
		"--jq . --retry-delay 5s..1s":                     "--retry-delay 5s..1s",
		"--jq . --rate fast":                              "--rate fast",
		"--jq . --rate 10/d":                              "--rate 10/d",
		"--jq . --rate 0/s":                               "--rate 0/s",
		"--jq . --rate NaN":                               "--rate NaN",
		"--jq . --rate -1/s":                              "--rate -1/s",
		"--jq . --max-cost -1":                            "--max-cost -1",
		"--jq . --max-cost NaN":                           "--max-cost NaN",
		"--jq . --max-cost much":                          "--max-cost",
		"--http http://me:s3cr3t-w0rd@127.0.0.1:1 --rate": "--rate",
	} {
		p.run(append([]string{"work", "--until-empty"}, strings.Fields(words)...)...).wants(2, says).lacks("s3cr3t-w0rd")
	}
	p.table().wants(map[string]int{"checkouts = 0": 1})
}

func TestATypedHandlerTakesThePlaceOfTheEnvironments(t *testing.T) {
	t.Parallel()
	p := newPlainPlace(t)
	p.load(2)
	p.env = []string{"WINDROW_STREAM=touch streamed; exit 1", "WINDROW_STREAM_SHARED=true", "WINDROW_HTTP_BATCH=5", "WINDROW_HEADER=a: b",
		"WINDROW_HTTP_CA=none", "WINDROW_OUTPUT_DIR=none"}
	p.ok("work", "--until-empty", "--jq", doubling).wants(0, "2 done")
	if p.has("streamed") {
		t.Error("the environment's handler ran beside the typed one")
	}
	p.env = []string{"WINDROW_STREAM=" + dear, "WINDROW_RATE=1000/s", "WINDROW_MAX_COST=100"}
	p.ok("reprocess", "--all", "--yes")
	p.ok("work", "--until-empty").wants(0, "2 done", "cost 2")
}

func TestAServiceThatComesUpLateCostsNoRowAnAttempt(t *testing.T) {
	for name, comeUp := range map[string]func(t *testing.T) (url string, up func()){"refused": lateListener, "503": lateService} {
		t.Run(name, func(t *testing.T) {
			onEachEngine(t, func(t *testing.T, p *place) {
				url, up := comeUp(t)
				p.load(100)
				worker := p.start("work", "--until-empty", "-j", "4", "--http", url)
				eventually(t, "the worker slows down", func() bool { return strings.Contains(worker.stderr.String(), "slowing down") })
				up()
				o := worker.end().wants(0, "100 done, 0 failed")
				for _, words := range []string{"slowing down", "serves again"} {
					if n := strings.Count(o.stderr, words); n != 1 {
						t.Errorf("%q was said %d times:\n%s", words, n, clip(o.stderr))
					}
				}
				b := p.table()
				b.wants(map[string]int{doubled(b): 100, "losses > 0": 0})
			})
		})
	}
}

// lateListener is the address of a service that nobody listens at before it is up.
func lateListener(t *testing.T) (string, func()) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	return "http://" + address, func() {
		listener, err := net.Listen("tcp4", address)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewUnstartedServer(http.HandlerFunc(doublingService))
		server.Listener.Close()
		server.Listener = listener
		server.Start()
		t.Cleanup(server.Close)
	}
}

// lateService is a service that says that it can't serve before it is up.
func lateService(t *testing.T) (string, func()) {
	up := make(chan struct{})
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-up:
			doublingService(w, r)
		default:
			http.Error(w, "later", http.StatusServiceUnavailable)
		}
	})
	return server.URL, func() { close(up) }
}

func TestACostLimitStopsTheJobUntilItIsRaised(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		p.write("rows.jsonl", numbers(50))
		args := func(limit string) []string {
			return []string{"run", "rows.jsonl", "-j", "1", "--max-batch", "2", "--stream", dear, "--max-cost", limit}
		}
		p.run(args("5")...).wants(3, "and 5 was the limit")
		b := p.jobTable()
		done := b.done()
		if done < 5 || done > 20 {
			t.Errorf("%d rows were worked at a cost of 1 each, want 5, and few more", done)
		}
		p.run(args("5")...).wants(3, "and 5 was the limit")
		b.wants(map[string]int{"is_processed": done, "checked_out_by IS NOT NULL AND NOT is_processed": 0})
		p.ok(args("1000")...).wants(0, "all 50 rows are finished: 50 done")
		b.wants(map[string]int{"is_processed AND error IS NULL AND attempts = 1": 50})
	})
}

func TestTheRateIsKept(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.load(40)
	began := time.Now()
	p.ok("work", "--until-empty", "-j", "8", "--rate", "20/s", "--jq", ".").wants(0, "40 done")
	if took := time.Since(began); took < 1900*time.Millisecond || took > 10*time.Second {
		t.Errorf("40 rows took %v at 20 a second, want about 2s", took)
	}
}

// filed says how each row's file is made, by the row's key: most copy their data
// twice, some fail in the middle.
const filed = `case $WINDROW_ROW_KEY in
fails) echo half > "$WINDROW_ROW_OUTPUT"; exit 65 ;;
hangs) echo half > "$WINDROW_ROW_OUTPUT"; exec sleep 1000 ;;
again) echo half > "$WINDROW_ROW_OUTPUT"; [ "$WINDROW_ROW_ATTEMPT" = 2 ] || exit 1 ;;
none) ;;
esac
[ "$WINDROW_ROW_KEY" = none ] || tee "$WINDROW_ROW_OUTPUT"`

func TestFilesOfRowsAreWholeAndNothingElseIsLeft(t *testing.T) {
	names := map[string]string{ // of the files, by key
		"plain": "plain", "a b": "a%20b", "../../x": "%2E.%2F..%2Fx", "/etc/x": "%2Fetc%2Fx", ".": "%2E", "..": "%2E.", ".hidden": "%2Ehidden",
		"row-7": "%72ow-7", "50%": "50%25", "é": "%C3%A9", "again": "again", ".windrow-1-1-1.tmp": "%2Ewindrow-1-1-1.tmp",
		"fails": "", "hangs": "", "none": "",
	}
	onEachEngine(t, func(t *testing.T, p *place) {
		var input strings.Builder
		want := map[string]string{}
		for key, name := range names {
			line := fmt.Sprintf(`{"name":%q,"text":%q}`, key, strings.Repeat(key, 20_000/len(key)))
			input.WriteString(line + "\n")
			if name != "" {
				want[name] = compact(line)
			}
		}
		marked(p).write("rows.jsonl", input.String())
		if err := os.MkdirAll(p.path("deep/er/out"), 0o755); err != nil {
			t.Fatal(err)
		}
		before := p.files("*")
		p.run("run", "rows.jsonl", "--key", "name", "-j", "4", "--timeout", "3s", "--max-attempts", "2", "--retry-delay", "1ms", "--max-failures", "none",
			"--output-dir", "deep/er/out", "--exec", filed).wants(3, "13 done, 2 failed")
		p.wantsAlone()
		b := p.jobTable()
		b.wants(map[string]int{"error LIKE 'exit status 65%' AND key = 'fails'": 1, "error LIKE '%timed out after 3s%' AND key = 'hangs'": 1})
		entries, err := os.ReadDir(p.path("deep/er/out"))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			content, known := want[entry.Name()]
			if !known {
				t.Errorf("a file %q was left", entry.Name())
			} else if got := compact(p.read("deep/er/out/" + entry.Name())); got != content {
				t.Errorf("the file %q is %s, want %s", entry.Name(), clip(got), clip(content))
			}
			delete(want, entry.Name())
		}
		if len(want) > 0 || len(p.files("deep/*")) != 1 || len(p.files("deep/er/*")) != 1 {
			t.Errorf("%d files are missing; elsewhere: %v, %v", len(want), p.files("deep/*"), p.files("deep/er/*"))
		}
		for _, name := range p.files("*") {
			if !slices.Contains(before, name) && !strings.HasPrefix(name, "rows.") {
				t.Errorf("%q is new beside the input", name)
			}
		}
	})
}
