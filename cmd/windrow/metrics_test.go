package main_test

import (
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

var metricsURL = regexp.MustCompile(`metrics: (http://\S+)/metrics`)

// watched is where a process says that it can be watched.
func (run *process) watched() string {
	run.t.Helper()
	var url string
	eventually(run.t, "the process says where it can be watched", func() bool {
		if found := metricsURL.FindStringSubmatch(run.stderr.String()); found != nil {
			url = found[1]
		}
		return url != "" || run.over()
	})
	if url == "" {
		run.t.Fatalf("it can't be watched: %s", clip(run.stderr.String()))
	}
	return url
}

// ask returns what a process answers; 0 is none.
func ask(t *testing.T, url string) (status int, body string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	resp, err := client.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// wantsAnswer checks a status and words of the body.
func wantsAnswer(t *testing.T, url string, status int, words ...string) {
	t.Helper()
	got, body := ask(t, url)
	if got != status {
		t.Errorf("%s: %d %s, want %d", url, got, clip(body), status)
	}
	for _, w := range words {
		if !strings.Contains(body, w) {
			t.Errorf("%s: %q is missing in %s", url, w, clip(body))
		}
	}
}

func TestAWorkerCanBeWatchedUntilItEnds(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		p.load(6)
		p.env = append(p.env, "WINDROW_METRICS_ADDR=0")
		worker := p.start("work", "-j", "2", "--exec", untilGo+"echo done")
		url := worker.watched()
		if !strings.HasPrefix(url, "http://127.0.0.1:") {
			t.Errorf("an address without a host is %s", url)
		}
		eventually(t, "two rows are begun", func() bool { return len(p.lines("begun")) == 2 })
		wantsAnswer(t, url+"/livez", 200, "alive")
		wantsAnswer(t, url+"/readyz", 200, "ready")
		wantsAnswer(t, url+"/metrics", 200,
			`windrow_rows_held{state="running"} 2`,
			`windrow_rows_total{outcome="done"} 0`,
			`windrow_conflicts_total{op="check_out",reason="serialization"} 0`,
			"go_sql_max_open_connections{", "go_goroutines ", "process_cpu_seconds_total ")
		worker.signal(syscall.SIGTERM)
		eventually(t, "the stop is seen", func() bool { status, _ := ask(t, url+"/readyz"); return status == 503 })
		wantsAnswer(t, url+"/readyz", 503, "the worker is stopping")
		wantsAnswer(t, url+"/livez", 200, "stopping")
		p.write("go", "")
		worker.end().wants(0, "2 done")
		if status, _ := ask(t, url+"/livez"); status != 0 {
			t.Error("somebody answers though the worker has ended")
		}
	})
}

func TestConflictsOfAWorkerAreCounted(t *testing.T) {
	t.Parallel()
	const rows = 5
	p := newFleet(t)
	p.load(rows)
	b := p.table()
	for _, statement := range []string{
		`CREATE SEQUENCE failures`, // which no rollback undoes
		`CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN
				IF nextval('failures') <= 2 THEN
					RAISE EXCEPTION 'made by the test' USING ERRCODE = '40001';
				END IF;
				RETURN NULL;
			END $$`,
		`CREATE TRIGGER fail AFTER UPDATE ON windrow.datasets EXECUTE FUNCTION fail()`,
	} {
		if err := b.db.Exec(statement).Error; err != nil {
			t.Fatal(err)
		}
	}
	worker := p.start("work", "--jq", doubling, "--metrics-addr", "0")
	url := worker.watched()
	eventually(t, "all is done", func() bool { return b.done() == rows })
	wantsAnswer(t, url+"/metrics", 200, `windrow_conflicts_total{op="check_out",reason="serialization"} 2`)
	worker.signal(syscall.SIGTERM)
	worker.end().wants(0)
}

func TestARunCanBeWatched(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("rows.jsonl", numbers(3))
	run := p.start("run", "rows.jsonl", "--metrics-addr", ":0", "-j", "1", "--exec", untilGo+"echo done")
	url := run.watched()
	eventually(t, "a row is begun", func() bool { return len(p.lines("begun")) == 1 })
	wantsAnswer(t, url+"/readyz", 200, "ready")
	wantsAnswer(t, url+"/metrics", 200, `windrow_rows_held{state="running"} 1`)
	p.write("go", "")
	run.end().wants(0, "3 done")
}

func TestAMetricsAddressThatCanNotBeHadStopsBeforeAnythingIsDone(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()
	p := newPlainPlace(t)
	p.load(2)
	p.run("work", "--jq", ".", "--metrics-addr", address).wants(1, "--metrics-addr: "+address+" is in use")
	p.table().wants(map[string]int{"checkouts > 0": 0})
	p.run("run", "rows.jsonl", "--jq", ".", "--metrics-addr", address).wants(1, "--metrics-addr: "+address+" is in use")
	if p.has("rows.windrow.db") {
		t.Error("a database was made")
	}
	for _, bad := range []string{"*:9090", "localhost", "70000"} {
		p.run("work", "--jq", ".", "--metrics-addr", bad).wants(2, "--metrics-addr", bad)
	}
}
