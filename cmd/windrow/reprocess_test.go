package main_test

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
)

// some is a table in which every tenth of 200 rows has failed.
func some(p *place) {
	p.t.Helper()
	var rows strings.Builder
	for line := range strings.Lines(numbers(200)) {
		rows.WriteString(strings.Replace(line, `{"n":`, `{"k":"k`+strings.TrimSuffix(line[5:], "}\n")+`","n":`, 1))
	}
	p.write("rows.jsonl", rows.String())
	p.ok("load", "rows.jsonl", "--key", "k")
	p.run("work", "--until-empty", "--handler-version", "v1", "--jq", `if .n % 10 == 0 then error("bad \(.n)") else .n end`).wants(3)
}

func TestReprocessInOneShot(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		some(p)
		o := p.run("reprocess", "--error", "bad <n>", "--keep-history", "--handler-version", "v2", "--jq", `if .n == 100 then error("still") else -.n end`)
		o.wants(3, "19 done, 1 failed").prints("run 1: 20 rows put back")
		p.ok("diff", "1").prints("now done  19", "still failing   1", "before  failed: jq: error: bad", "windrow show k10")
		p.ok("show", "k20").prints("result", "-20", "round 0", "failed: jq: error: bad 20", "put back by run 1")
		p.ok("reprocess", "--failed", "--jq", ".n").prints("run 2: 1 row put back")
		p.ok("status", "--json").prints(`"failed":0`, `"done":200`)
		p.ok("runs").prints("error bad <n>", "kept")
		p.run("diff", "2").wants(1, "--keep-history")
	})
}

func TestReprocessForTheFleet(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		some(p)
		worker := p.start("work", "--jq", ".n")
		p.ok("reprocess", "--all", "--yes", "--wait").prints("200 rows put back")
		p.ok("status", "--json").prints(`"failed":0`, `"done":200`)
		worker.signal(syscall.SIGTERM)
		worker.end().wants(0)

		p.ok("reprocess", "--version-not", "v1").prints("200 rows put back")
		p.run("runs", "cancel", "2").wants(0, "run 2 cancelled: 200 rows put back as they were before")
		p.ok("status", "--json").prints(`"failed":0`, `"done":200`)
		p.ok("runs", "--json").prints(`"state":"cancelled"`, `"restored":200`, `"left":0`)
		p.run("runs", "cancel", "9").wants(1, "no run 9")
		waiting := p.start("reprocess", "--sample", "5", "--all", "--yes", "--wait")
		eventually(t, "it says that nobody works", func() bool { return contains(waiting.stderr.String(), "no worker is there") })
		p.ok("work", "--jq", ".n", "--until-empty")
		waiting.end().wants(0, "all rows of run 3 have been worked")
		p.run("runs", "cancel", "x").wants(2, "windrow runs")
	})
}

func TestADryRunTellsWhatWouldBe(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		some(p)
		p.ok("reprocess", "--failed", "--dry-run").prints("20 rows would be put back", "20 failed", "windrow show k10", "rows/s they would take")
		var report struct {
			Total  int64
			Counts map[string]int64
			First  []struct {
				ID  int64
				Key string
			}
			Seconds *float64
		}
		p.write("keys", "k1\nk10\n\nk200\n")
		if err := json.Unmarshal([]byte(p.ok("reprocess", "--key-file", "keys", "--dry-run", "--json").stdout), &report); err != nil {
			t.Fatal(err)
		}
		if report.Total != 3 || report.Counts["done"] != 1 || report.Counts["failed"] != 2 || len(report.First) != 3 || report.First[0].Key != "k1" || report.Seconds == nil {
			t.Errorf("%+v", report)
		}
		p.ok("runs", "--json").lacks("{")
		p.run("reprocess", "--key-file", "keys").wants(0).prints("3 rows put back")
		p.feed("k2\nnone\n", "reprocess", "--key-file", "-").end().wants(1, "no row has the keys: none").prints("1 row put back")
	})
}

func TestAReprocessIsAskedForPlainly(t *testing.T) {
	p := newPlainPlace(t)
	some(p)
	for _, words := range []string{
		"reprocess", "reprocess --all --failed", "reprocess --failed --keys a --key-file b", "reprocess --failed --sample -1", "reprocess --key-file none",
		"reprocess --all", "reprocess --failed --jq . --wait", "reprocess --failed --jq . --dry-run", "reprocess --failed --jq . --exec true", "reprocess --failed extra",
	} {
		p.run(strings.Fields(words)...).wants(2)
	}
	p.run("reprocess", "--where", "no such thing").wants(2, "--where: ").lacks("SELECT")
	p.env = append(p.env, "WINDROW_JQ=.") // is for workers
	p.ok("reprocess", "--failed").prints("20 rows put back")
	p.ok("status", "--json").prints(`"fresh":20`)
}
