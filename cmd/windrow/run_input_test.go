package main_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestAGrownInputBringsItsNewRows(t *testing.T) {
	p := newJob(t, 10)
	p.ok("run", "rows.jsonl", "--jq", doubling)
	p.write("rows.jsonl", numbers(15))
	p.ok("run", "rows.jsonl", "--jq", doubling).wants(0, "loaded 5 rows", "15 done")
	wantsEachIDOnce(t, p.read("rows.results.jsonl"), 15)
	p.file("rows.windrow.db").wants(map[string]int{"checkouts = 1": 15})
}

func TestALimitCanBeLifted(t *testing.T) {
	p := newJob(t, 10)
	p.ok("run", "rows.jsonl", "--jq", doubling, "--limit", "4").wants(0, "4 done")
	wantsEachIDOnce(t, p.read("rows.results.jsonl"), 4)
	p.ok("run", "rows.jsonl", "--jq", doubling, "--limit", "4").lacks("loaded")
	p.ok("run", "rows.jsonl", "--jq", doubling).wants(0, "loaded 6 rows", "10 done")
	wantsEachIDOnce(t, p.read("rows.results.jsonl"), 10)
}

func TestTryStoresNothing(t *testing.T) {
	p := newJob(t, 10)
	p.ok("run", "rows.jsonl", "--jq", doubling, "--try", "2").prints(`{"n":1}`, `{"double":2}`, `{"n":2}`, `{"double":4}`).lacks(`{"n":3}`)
	p.run("run", "rows.jsonl", "--jq", oddFails, "--try", "2").wants(3).prints("odd")
	p.run("run", "rows.jsonl", "--jq", doubling, "--try", "-1").wants(2)
	if files := p.files("*"); len(files) != 1 {
		t.Errorf("files: %v, want the input alone", files)
	}
}

const airports = "iata,city,population\n00M,Bay Springs,1\n00R,\"Livingston, TX\",02\n"

func TestOutputs(t *testing.T) {
	const jq = `{city: (.city | ascii_upcase), long: ((.city | length) > 11)}`
	tests := map[string]struct {
		flags []string
		file  string
		want  string
	}{
		"json lines, keyed": {[]string{"--key", "iata"}, "airports.results.jsonl",
			`{"id":1,"key":"00M","state":"done","result":{"city":"BAY SPRINGS","long":false}}` + "\n" +
				`{"id":2,"key":"00R","state":"done","result":{"city":"LIVINGSTON, TX","long":true}}` + "\n"},
		"json lines, keyless": {nil, "airports.results.jsonl",
			`{"id":1,"state":"done","result":{"city":"BAY SPRINGS","long":false},"data":{"iata":"00M","city":"Bay Springs","population":"1"}}` + "\n" +
				`{"id":2,"state":"done","result":{"city":"LIVINGSTON, TX","long":true},"data":{"iata":"00R","city":"Livingston, TX","population":"02"}}` + "\n"},
		"csv": {[]string{"--key", "iata", "--output", "out.csv"}, "out.csv",
			"id,key,state,city,long\n1,00M,done,BAY SPRINGS,false\n2,00R,done,\"LIVINGSTON, TX\",true\n"},
		"csv, merged": {[]string{"--key", "iata", "-o", "out.csv", "--merge"}, "out.csv",
			"windrow_id,windrow_key,windrow_state,iata,city,population,long\n" +
				"1,00M,done,00M,BAY SPRINGS,1,false\n2,00R,done,00R,\"LIVINGSTON, TX\",02,true\n"},
		"json lines, merged": {[]string{"--merge", "-o", "out.jsonl"}, "out.jsonl",
			`{"windrow_id":1,"windrow_state":"done","iata":"00M","city":"BAY SPRINGS","population":"1","long":false}` + "\n" +
				`{"windrow_id":2,"windrow_state":"done","iata":"00R","city":"LIVINGSTON, TX","population":"02","long":true}` + "\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlainPlace(t)
			p.write("airports.csv", airports)
			p.ok(append([]string{"run", "airports.csv", "--jq", jq}, tt.flags...)...)
			if got := p.read(tt.file); got != tt.want {
				t.Errorf("%s:\n%s\nwant:\n%s", tt.file, got, tt.want)
			}
		})
	}
}

func TestResultsToStdoutEachTime(t *testing.T) {
	p := newJob(t, 3)
	for range 2 {
		o := p.ok("run", "rows.jsonl", "--jq", doubling, "-o", "-")
		wantsEachIDOnce(t, o.stdout, 3)
	}
}

func TestStdinIsAnInputLikeAnyOther(t *testing.T) {
	t.Parallel()
	p := newPlainPlace(t)
	args := []string{"run", "-", "--jq", doubling}
	p.feed(numbers(10), args...).end().wants(0, "loaded 10 rows", "10 done")
	wantsEachIDOnce(t, p.read("stdin.results.jsonl"), 10)
	p.feed(numbers(10), args...).end().wants(0, "10 done").lacks("loaded")
	p.feed(numbers(12), args...).end().wants(0, "loaded 2 rows", "12 done")
	p.feed(strings.Replace(numbers(12), `"n":3`, `"n":4`, 1), args...).end().wants(2, "changed", "--continue", "--fresh")
	wantsEachIDOnce(t, p.read("stdin.results.jsonl"), 12)
}

func TestARunOnStdinKilledGoesOn(t *testing.T) {
	t.Parallel()
	p := newPlainPlace(t)
	args := []string{"run", "-", "-j", "2", "--exec", untilGo + `printf '{"double":%d}' $((2*WINDROW_ROW_ID))`}
	run := p.feed(numbers(10), args...)
	eventually(t, "rows are begun", func() bool { return len(p.lines("begun")) == 2 })
	run.kill()
	p.write("go", "")
	p.feed(numbers(10), args...).end().wants(0, "2 rows were being worked", "10 done")
	wantsEachIDOnce(t, p.read("stdin.results.jsonl"), 10)
	p.file("stdin.windrow.db").wants(map[string]int{"losses = 1 AND attempts = 2": 2, "losses = 0 AND attempts = 1": 8})
}

func TestARunThatFailsTooOftenStopsAndSaysWhy(t *testing.T) {
	p := newJob(t, 2_000)
	args := []string{"run", "rows.jsonl", "-j", "1", "--max-batch", "20", "--jq", `error("no such thing")`}
	p.run(args...).wants(3, "too many failures: 100 of the last 100 handler calls", "100× ", "no such thing", "the same command goes on from here")
	b := p.file("rows.windrow.db")
	if n := b.count("is_processed"); n < 100 || n > 1_000 {
		t.Errorf("%d rows had failed when it stopped, want somewhat more than 100", n)
	}
	b.wants(map[string]int{"checked_out_by IS NOT NULL AND NOT is_processed": 0})
	if p.has("rows.results.jsonl") {
		t.Error("a run that gave up wrote results")
	}
	p.run("run", "rows.jsonl", "--jq", `error("no such thing")`, "--max-failures", "none").wants(3, "2,000 failed")
	p.run("run", "rows.jsonl", "--jq", `error("no such thing")`, "--max-failures", "3", "--retry-failed").wants(3, "too many failures")
	p.run("run", "rows.jsonl", "--jq", `error("no such thing")`, "--max-failures", "half").wants(2, "--max-failures half")
}

func TestAThirdFailingIsNotTooOften(t *testing.T) {
	p := newJob(t, 300)
	p.run("run", "rows.jsonl", "--jq", `if .n % 3 == 0 then error("third") else . end`).wants(3, "200 done, 100 failed")
}

func TestAJQProgramsOutputs(t *testing.T) {
	p := newJob(t, 1)
	p.ok("run", "rows.jsonl", "--jq", "empty")
	if got := p.read("rows.results.jsonl"); !strings.Contains(got, `"result":null`) {
		t.Errorf("no output: %s", got)
	}
	p.run("run", "rows.jsonl", "--fresh", "--jq", ".n, .n").wants(3, "1 failed")
	p.run("run", "rows.jsonl", "--fresh", "--jq", ".n | ").wants(2, "--jq")
	p.ok("run", "rows.jsonl", "--fresh", "--jq", "[.n, $a, $b]", "--arg", "a=x", "--argjson", `b={"c":1}`)
	if got := p.read("rows.results.jsonl"); !strings.Contains(got, `"result":[1,"x",{"c":1}]`) {
		t.Errorf("arguments: %s", got)
	}
}

func TestBadRecordsOfARun(t *testing.T) {
	t.Parallel()
	p := newPlainPlace(t)
	p.write("rows.jsonl", "{\"n\":1}\nnot json\n{\"n\":2}\n")
	p.run("run", "rows.jsonl", "--jq", doubling).wants(1, "rows.jsonl", "line 2")
	args := []string{"run", "rows.jsonl", "--jq", doubling, "--rejects", "bad.jsonl"}
	for range 2 {
		p.run(args...).wants(3, "2 done")
		wantsEachIDOnce(t, p.read("rows.results.jsonl"), 2)
		if bad := p.read("bad.jsonl"); strings.Count(bad, "\n") != 1 || !strings.Contains(bad, `"line":2`) {
			t.Errorf("rejects: %s", bad)
		}
	}
}

func TestARunWithoutAnInput(t *testing.T) {
	t.Parallel()
	p := newPlainPlace(t)
	p.run("run", "--jq", ".").wants(2, "an input")
	p.run("run", "missing.csv", "--jq", ".").wants(1, "missing.csv")
	p.run("run", "missing.csv").wants(2, "exactly one of")
	p.run("run", "missing.csv", "--jq", ".", "--exec", "cat").wants(2, "exactly one of")
	p.write("empty.jsonl", "")
	p.ok("run", "empty.jsonl", "--jq", ".").wants(0, "all 0 rows are finished")
	if got := p.read("empty.results.jsonl"); got != "" {
		t.Errorf("results of nothing: %q", got)
	}
}

func TestARunOnPostgresHasAResultFileToo(t *testing.T) {
	t.Parallel()
	p := newFleet(t)
	p.write("rows.jsonl", numbers(10))
	for range 2 {
		p.ok("run", "rows.jsonl", "--jq", doubling).wants(0, "10 done")
		wantsEachIDOnce(t, p.read("rows.results.jsonl"), 10)
	}
	p.run("run", "rows.jsonl", "--jq", doubling, "--fresh").wants(2, "--schema")
	if got := fmt.Sprint(p.files("*.db*")); got != "[]" {
		t.Errorf("database files: %s", got)
	}
}
