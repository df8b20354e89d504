package main_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// addedLine is what add --json documents.
type addedLine struct {
	ID          int64      `json:"id"`
	Key         *string    `json:"key"`
	Added       bool       `json:"added"`
	AvailableAt *time.Time `json:"available_at"`
}

// addJSON adds a row, as a process of its own.
func (p *place) addJSON(args ...string) (line addedLine) {
	p.t.Helper()
	out := p.ok(append([]string{"add", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out.stdout), &line); err != nil {
		p.t.Fatal(err)
	}
	return line
}

func TestARowIsAddedForLaterAndCancelled(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		p.program = program
		if id := strings.TrimSpace(p.ok("add", `{"n": 1}`, "--key", "a", "--in", "90m").wants(0, "due at", "UTC, in 1h30m").stdout); id != "1" {
			t.Fatalf("id %q", id)
		}
		again := p.addJSON(`{"n": 2}`, "--key", "a")
		if again.Added || again.ID != 1 || *again.Key != "a" || again.AvailableAt != nil {
			t.Errorf("the same key again: %+v", again)
		}
		p.run("add", `{"n": 2}`, "--key", "a").wants(0, "is there already: nothing was added").prints("1")
		at := p.addJSON(`{"n": 3}`, "--at", "2100-12-24T18:00:00+01:00", "--key", "b")
		if !at.Added || at.AvailableAt == nil || at.AvailableAt.Format(time.RFC3339) != "2100-12-24T17:00:00Z" {
			t.Errorf("at a time with its zone: %+v", at)
		}
		p.run("add", `{"n": 4}`, "--at", "2001-01-01T00:00:00Z").wants(0, "past: due at once")
		p.feed("{\"n\": 5}\n", "add", "--key", "c").end().wants(0, "due at once")
		p.ok("show", "a").prints("waiting", "in 1h")

		p.run("cancel", "a").wants(0, "row 1 is cancelled; it would have been due at")
		p.run("cancel", "a").wants(0, "was cancelled before")
		p.ok("cancel", "--id", "1", "--json").prints(`"cancelled":false`)
		p.ok("show", "a").prints("failed", "cancelled")
		p.run("cancel", "nobody").wants(1, `there is no row with key "nobody"`)
		p.ok("work", "--until-empty", "--jq", ".n")
		p.run("cancel", "c").wants(1, "it is done already")
		p.table().wants(map[string]int{"error = 'cancelled'": 1, "is_processed AND error IS NULL": 2, "NOT is_processed": 1})
		p.ok("reprocess", "--failed", "--yes")
		p.ok("work", "--until-empty", "--jq", ".n")
		p.table().wants(map[string]int{"is_processed AND error IS NULL AND key = 'a'": 1, "NOT is_processed": 1})
	})
}

func TestAHeldRowIsNotCancelled(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		p.program = program
		p.ok("add", `1`, "--key", "k")
		worker := p.start("work", "--exec", "sleep 60", "--grace", "0s")
		table := p.table()
		eventually(t, "the row is held", func() bool { return table.held() == 1 })
		p.run("cancel", "k").wants(1, "was not cancelled: a worker has it")
		worker.kill()
	})
}

func TestWhatAddAndCancelRefuse(t *testing.T) {
	t.Parallel()
	p := newPlainPlace(t)
	for _, tt := range []struct {
		args  []string
		wants string
	}{
		{[]string{"add", `{"n": `}, "not JSON"},
		{[]string{"add", `1 2`}, "there is more after the value"},
		{[]string{"add", `1`, "--at", "2026-12-24T18:00:00"}, "the zone is missing; write 2026-12-24T18:00:00Z for UTC"},
		{[]string{"add", `1`, "--at", "2026-12-24"}, "the zone is missing"},
		{[]string{"add", `1`, "--at", "tomorrow"}, "is wanted"},
		{[]string{"add", `1`, "--at", "2026-12-24T18:00:00Z", "--in", "1m"}, "exclude each other"},
		{[]string{"add", `1`, "--in", "-1m"}, "must not be negative"},
		{[]string{"add", `1`, "--key", ""}, "can't be a key"},
		{[]string{"add", `1`, "2"}, "accepts at most 1 arg"},
		{[]string{"add"}, "standard input: "},
		{[]string{"cancel"}, "cancel which row?"},
		{[]string{"run", "x.csv", "--jq", ".", "--available-at", "due"}, "windrow work"},
	} {
		p.run(tt.args...).wants(2, tt.wants)
	}
	p.run("cancel", "k").wants(1, "there is no database at")
	if files := p.files("*"); len(files) != 0 {
		t.Errorf("files: %v", files)
	}
	p.ok("run", "--help").lacks("--available-at")
	p.ok("load", "--help").prints("--available-at")
}

func TestLoadedRowsComeDueByAField(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		p.program = program
		p.write("rows.jsonl", strings.Join([]string{
			`{"n": 1}`,
			`{"n": 2, "due": null}`,
			`{"n": 3, "due": "2100-01-01T00:00:00Z"}`,
			fmt.Sprintf(`{"n": 4, "due": %d.5}`, time.Now().Add(time.Hour).Unix()),
			`{"n": 5, "due": "2001-01-01T00:00:00+02:00"}`,
			`{"n": 6, "due": "2100-01-01 00:00"}`,
			`{"n": 7, "due": true}`,
		}, "\n"))
		p.run("load", "rows.jsonl", "--available-at", "due").wants(1, "rows.jsonl, line 6", "--available-at", `field "due"`, "is no time")
		p.run("load", "rows.jsonl", "--available-at", "due", "--rejects", "bad.jsonl").wants(3, "2 bad records")
		p.write("rows.csv", "n,due\n8,\n9,4102444800\n10,2100-01-01T00:00:00Z\n")
		p.ok("load", "rows.csv", "--available-at", "due")
		p.ok("work", "--until-empty", "--jq", ".n")
		p.table().wants(map[string]int{"is_processed AND error IS NULL": 4, "NOT is_processed": 4})
		p.ok("status", "--json").prints(`"waiting":4`)
	})
}

// The worker sleeps until a row that is due in an hour; each row that another process
// adds for sooner starts in time.
func TestARowAddedForSoonerStartsInTime(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		p.program = program
		const tasks = 5
		p.ok("add", `0`, "--in", "1h")
		p.ok("add", `0`)
		worker := p.start("work", "--jq", "now")
		table := p.table()
		eventually(t, "the worker is idle", func() bool { return table.done() == 1 })
		var late []time.Duration
		for n := range tasks {
			due := p.addJSON(strconv.Itoa(n), "--in", fmt.Sprint(time.Duration(300+200*n)*time.Millisecond)).AvailableAt
			eventually(t, "it is done", func() bool { return table.done() == n+2 })
			rows := table.rows("is_processed")
			began, err := strconv.ParseFloat(*rows[len(rows)-1].Result, 64)
			if err != nil {
				t.Fatal(err)
			}
			late = append(late, time.UnixMicro(int64(began*1e6)).Sub(*due).Round(time.Millisecond))
		}
		t.Logf("started %v after their due times", late)
		inTime := 0
		for _, d := range late {
			if d < -2*time.Millisecond || d > 2*time.Second {
				t.Errorf("started %v after its due time", d)
			}
			if d < 100*time.Millisecond {
				inTime++
			}
		}
		if inTime <= tasks/2 { // the machine may be busy with something else now and then
			t.Errorf("%d of %d started within 100 ms of their due times", inTime, tasks)
		}
		worker.signal(15)
		worker.end().wants(0)
	})
}

func TestAThousandRowsDueAtOnceOnOneFile(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	const rows = 1000
	due := time.Now().Add(4 * time.Second)
	var b strings.Builder
	for n := range rows {
		fmt.Fprintf(&b, `{"n": %d, "due": %q}`+"\n", n+1, due.UTC().Format(time.RFC3339Nano))
	}
	p.write("rows.jsonl", b.String())
	p.ok("load", "rows.jsonl", "--available-at", "due", "--key", "n")
	table := p.table()
	table.watch()
	var workers []*process
	for range 3 {
		workers = append(workers, p.start("work", "-j", "2", "--jq", doubling))
	}
	if table.done() > 0 {
		t.Error("rows were worked before their time")
	}
	eventually(t, "all are done", func() bool { return table.done() == rows })
	t.Logf("all done %v after they came due", time.Since(due).Round(time.Millisecond))
	for _, w := range workers {
		w.signal(15)
	}
	for _, w := range workers {
		w.end().wants(0).lacks("locked")
	}
	table.wantsAcceptedOnce(rows)
	table.wants(map[string]int{"checkouts = 1 AND attempts = 1": rows})
}
