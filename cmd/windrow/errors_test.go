package main_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
)

// errorLine is what --json documents.
type errorLine struct {
	Message      string    `json:"message"`
	Count        int       `json:"count"`
	AtLeast      bool      `json:"at_least"`
	Failed       int       `json:"failed"`
	Waiting      int       `json:"waiting"`
	First        time.Time `json:"first"`
	Last         time.Time `json:"last"`
	Versions     []string  `json:"versions"`
	MoreVersions bool      `json:"more_versions"`
	SampleID     int       `json:"sample_id"`
	SampleKey    string    `json:"sample_key"`
	SampleError  string    `json:"sample_error"`
	Other        bool      `json:"other"`
}

// errorLines runs errors --json, and knows every field of what it prints.
func (p *place) errorLines(flags ...string) []errorLine {
	p.t.Helper()
	var lines []errorLine
	decoder := json.NewDecoder(strings.NewReader(p.ok(append([]string{"errors", "--json"}, flags...)...).stdout))
	decoder.DisallowUnknownFields()
	for decoder.More() {
		var line errorLine
		if err := decoder.Decode(&line); err != nil {
			p.t.Fatal(err)
		}
		lines = append(lines, line)
	}
	return lines
}

// erred is a table in which six rows have failed with one message, for two versions of
// a handler, two with others, and three wait for another try.
func erred(p *place) {
	p.t.Helper()
	p.write("rows.jsonl", numbers(9))
	p.ok("load", "rows.jsonl")
	p.run("work", "--until-empty", "--jq", `if .n <= 5 then error("row \(.n): <too large>") elif .n == 6 then error("status 404") elif .n == 7 then error("status 500") else . end`).wants(3, "2 done, 7 failed", "windrow errors")
	p.write("keyed.jsonl", `{"n":10,"k":"the tenth"}`+"\n")
	p.ok("load", "keyed.jsonl", "--key", "k")
	p.run("work", "--until-empty", "--jq", `error("row \(.n): <too large>")`).wants(3, "1 failed")

	p.write("late.jsonl", numbers(3))
	p.ok("load", "late.jsonl")
	worker := p.start("work", "-j", "8", "--max-attempts", "100", "--retry-delay", "24h..24h", "--exec", `echo "row $WINDROW_ROW_ID is late" >&2; exit 1`)
	b := p.table()
	eventually(p.t, "three rows have failed once", func() bool { return b.count("NOT is_processed AND last_error IS NOT NULL") == 3 })
	worker.signal(syscall.SIGTERM)
	worker.end().wants(0)
}

func TestErrorsAreGrouped(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		erred(p)
		lines := p.errorLines()
		if len(lines) != 4 {
			t.Fatalf("%d messages: %+v", len(lines), lines)
		}
		large, late := lines[0], lines[1]
		if !strings.HasSuffix(large.Message, "row <n>: <too large>") || large.Count != 6 || large.Failed != 6 || large.Waiting != 0 || len(large.Versions) != 2 {
			t.Errorf("the most frequent: %+v", large)
		}
		if large.SampleID != 10 || large.SampleKey != "the tenth" || !strings.HasSuffix(large.SampleError, "row 10: <too large>") {
			t.Errorf("its sample: %+v, want the row that failed last", large)
		}
		if since := time.Since(large.First); large.Last.Before(large.First) || since < 0 || since > patience || large.AtLeast || large.Other {
			t.Errorf("from %v to %v", large.First, large.Last)
		}
		if late.Message != "exit status 1: row <n> is late" || late.Count != 3 || late.Failed != 0 || late.Waiting != 3 || len(late.Versions) != 0 {
			t.Errorf("the waiting: %+v", late)
		}
		if status := lines[2].Message + lines[3].Message; !strings.Contains(status, "404") || !strings.Contains(status, "500") {
			t.Errorf("the others: %q, %q", lines[2].Message, lines[3].Message)
		}
	})
}

func TestErrorsAreListedForPeople(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		erred(p)
		o := p.ok("errors").prints("COUNT", "2 versions", "'the tenth'", "row <n>: <too large>", "exit status 1: row <n> is late", "--id 7").
			wants(0, "windrow show 'the tenth'")
		if n := strings.Count(o.stdout, "\n"); n != 5 {
			t.Errorf("%d lines:\n%s", n, o.stdout)
		}
		p.ok("show", "the tenth").prints("row 10: <too large>")

		o = p.ok("errors", "--limit", "2").wants(0, "and 2 more messages, of 2 rows: --limit 0 lists all").prints("too large", "late")
		o.lacks("404")
		if lines := p.errorLines("--limit", "3"); len(lines) != 3 {
			t.Errorf("%d lines of JSON, want 3", len(lines))
		}
		p.ok("errors", "--limit", "0").prints("404", "500").lacks("more message")
		if o := p.ok("errors", "-q"); o.stderr != "" {
			t.Errorf("in spite of --quiet it said %q", o.stderr)
		}
	})
}

func TestErrorsOfVersionsAreToldApart(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		erred(p)
		counts := map[string]int{}
		var second string
		for _, line := range p.errorLines("--by-version") {
			if strings.Contains(line.Message, "large") {
				counts[fmt.Sprint(line.Versions)] = line.Count
				if line.Count == 1 {
					second = line.Versions[0]
				}
			}
		}
		if len(counts) != 2 || second == "" {
			t.Fatalf("counts by version: %v, want 5 and 1", counts)
		}
		for _, version := range []string{second, second[:6]} {
			if lines := p.errorLines("--version", version); len(lines) != 1 || lines[0].Count != 1 || lines[0].Versions[0] != second {
				t.Errorf("of version %s: %+v", version, lines)
			}
		}
		p.ok("errors", "--by-version").prints(second).lacks("2 versions")
		if o := p.ok("errors", "--version", "unknown").wants(0, "no row has failed with version unknown"); o.stdout != "" {
			t.Errorf("printed %q", o.stdout)
		}
	})
}

func TestWithoutErrorsItIsSaid(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		p.load(3)
		for _, args := range [][]string{{"errors"}, {"errors", "--json"}} {
			if o := p.ok(args...).wants(0, "no row has failed"); o.stdout != "" {
				t.Errorf("%v printed %q", args, o.stdout)
			}
		}
	})
}

func TestErrorsNeverMakeADatabase(t *testing.T) {
	t.Parallel()
	p := newPlainPlace(t)
	p.run("errors").wants(1, "there is no database at")
	p.run("errors", "--limit", "-1").wants(2, "--limit -1")
	if files := p.files("*"); len(files) != 0 {
		t.Errorf("files: %v", files)
	}
	p.database = pgtest.Database(t)
	p.run("errors").wants(1, "windrow migrate up")
}

// A text that no terminal should get, and a key that no line has room for, are shown
// another way.
func TestHostileErrorsAreShownSafely(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		p.write("rows.jsonl", fmt.Sprintf(`{"k":"two\nlines","s":1}
{"k":"%s","s":2}
{"k":"-q","s":3}
`, strings.Repeat("x", 200)))
		p.ok("load", "rows.jsonl", "--key", "k")
		p.run("work", "--until-empty", "--exec", `printf 'a\033]0;title\007\nbell %s\342\200\256' "$WINDROW_ROW_ID" >&2; head -c 100000 /dev/zero | tr '\000' y >&2; printf 'end %s' "$WINDROW_ROW_KEY" >&2; exit 65`).wants(3)
		o := p.ok("errors")
		for _, line := range strings.Split(o.stdout, "\n") {
			if len(line) > 400 || strings.ContainsAny(line, "\x1b\a\u202e") {
				t.Errorf("line %q", line)
			}
		}
		o.prints("--id 1", "--id 2", "--id 3", "exit status 65")
	})
}

// More messages than are told apart are counted all the same.
func TestVeryManyMessagesAreCountedTogether(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		p.load(4000)
		p.run("work", "--until-empty", "--max-failures", "none", "--jq",
			`error(if .n % 2 == 0 then "common" else "rare " + ([.n % 10, (.n / 10 % 10 | floor), (.n / 100 % 10 | floor), (.n / 1000 | floor)] | map([. + 103] | implode) | add) end)`).wants(3, "4,000 failed")
		// Which messages are given up hangs on when their rows failed: here by their ids,
		// though workers begin anywhere.
		b := p.table()
		at := map[bool]string{true: "TIMESTAMPTZ 'epoch' + id * interval '1 second'", false: "id * 1000000"}[b.onPostgres()]
		if err := b.db.Exec("UPDATE " + b.name + " SET processed_at = " + at).Error; err != nil {
			t.Fatal(err)
		}
		lines := p.errorLines("--limit", "0")
		total := 0
		for _, line := range lines {
			total += line.Count
		}
		last := lines[len(lines)-1]
		if total != 4000 || len(lines) > 1001 || lines[0].Count != 2000 || lines[0].AtLeast {
			t.Errorf("%d lines of %d rows, the first %+v", len(lines), total, lines[0])
		}
		if !last.Other || last.Message != "other messages" || last.Count < 1000 || !lines[len(lines)-2].AtLeast {
			t.Errorf("the last two: %+v, %+v", lines[len(lines)-2], last)
		}
		p.ok("errors").prints("2,000", "1+", "other messages")
	})
}
