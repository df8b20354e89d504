package main_test

import (
	"os"
	"strings"
	"testing"
	"time"
)

// oddFails is a jq program that fails the odd rows for good.
const oddFails = `if .n % 2 == 1 then error("odd") else {half: (.n / 2)} end`

// newJob is a place with n rows of numbers to run.
func newJob(t *testing.T, n int) *place {
	t.Helper()
	t.Parallel()
	p := newPlainPlace(t)
	p.write("rows.jsonl", numbers(n))
	return p
}

func TestAFinishedRunSaysSoAndRewritesWhatIsMissing(t *testing.T) {
	p := newJob(t, 10)
	args := []string{"run", "rows.jsonl", "--jq", oddFails, "--errors", "errors.jsonl"}
	p.run(args...).wants(3, "loaded 10 rows", "all 10 rows are finished: 5 done, 5 failed")
	results, errors := p.read("rows.results.jsonl"), p.read("errors.jsonl")
	if want := `{"id":2,"state":"done","result":{"half":1},"data":{"n":2}}` + "\n"; !strings.HasPrefix(results, want) {
		t.Errorf("results begin with %q, want %q", clip(results), want)
	}
	if strings.Count(results, "\n") != 5 || strings.Count(errors, `"state":"failed"`) != 5 {
		t.Errorf("results %s, errors %s", results, errors)
	}
	p.run(args...).wants(3, "all 10 rows are finished: 5 done, 5 failed").lacks("loaded", "wrote")
	for name, content := range map[string]string{"rows.results.jsonl": results, "errors.jsonl": errors} {
		p.remove(name)
		p.run(args...).wants(3, "wrote")
		if p.read(name) != content {
			t.Errorf("%s was not written anew as it was", name)
		}
	}
	p.file("rows.windrow.db").wants(map[string]int{"is_processed AND checkouts = 1": 10})
}

func TestARunWithoutFailuresExitsWithZeroEachTime(t *testing.T) {
	p := newJob(t, 10)
	for range 3 {
		p.ok("run", "rows.jsonl", "--jq", doubling).wants(0, "all 10 rows are finished: 10 done, 0 failed")
	}
}

func TestRetryFailedTakesOnlyTheFailedUpAgain(t *testing.T) {
	p := newJob(t, 10)
	args := []string{"run", "rows.jsonl", "--max-attempts", "1", "--exec", `if [ -e mended ]; then echo fine; else [ $((WINDROW_ROW_ID % 2)) = 0 ]; fi`}
	p.run(args...).wants(3, "5 done, 5 failed", "windrow errors --database rows.windrow.db\n", "--retry-failed")
	p.write("mended", "")
	p.run(args...).wants(3, "5 done, 5 failed")
	p.ok(append(args, "--retry-failed")...).wants(0, "5 failed rows are taken up again", "10 done, 0 failed")
	p.file("rows.windrow.db").wants(map[string]int{"round = 1 AND checkouts = 2": 5, "round = 0 AND checkouts = 1": 5})
	if results := p.read("rows.results.jsonl"); strings.Count(results, `"result":"fine"`) != 5 || strings.Count(results, `"state":"done"`) != 10 {
		t.Errorf("results: %s", results)
	}
	p.ok(args...)
}

func TestOneFileIsWorkedByOneRunAlone(t *testing.T) {
	p := newJob(t, 4)
	args := []string{"run", "rows.jsonl", "--exec", untilGo + "echo done"}
	first := p.start(args...)
	eventually(t, "the first run works", func() bool { return len(p.lines("begun")) > 0 })
	p.run(args...).wants(5, "is being worked on by another windrow")
	p.run("run", "rows.jsonl", "--jq", "{}", "--fresh").wants(5)
	p.run("work", "--database", "rows.windrow.db", "--jq", "{}").wants(5)
	p.run("work", "--database", "sqlite:rows.windrow.db", "--jq", "{}").wants(5)
	p.run("run", "rows.jsonl", "--database", "sqlite:rows.windrow.db", "--jq", "{}").wants(5)
	p.ok("status", "--database", "rows.windrow.db").prints("in_flight")
	p.write("go", "")
	first.end().wants(0, "4 done")
	if old := p.files("*.old-*"); len(old) > 0 {
		t.Errorf("moved aside beneath a run: %v", old)
	}
}

func TestAWorkersFileIsNotForARun(t *testing.T) {
	p := newJob(t, 4)
	p.ok("load", "rows.jsonl", "--database", "rows.windrow.db")
	worker := p.start("work", "--database", "rows.windrow.db", "--exec", untilGo)
	eventually(t, "the worker works", func() bool { return len(p.lines("begun")) > 0 })
	p.run("run", "rows.jsonl", "--jq", "{}").wants(5)
	worker.kill()
}

func TestAChangedInputOrHandlerIsNoticed(t *testing.T) {
	changes := map[string]struct {
		change func(p *place)
		args   []string
	}{
		"input":   {func(p *place) { p.write("rows.jsonl", strings.Replace(numbers(10), `"n":3`, `"n":33`, 1)) }, []string{"--jq", doubling}},
		"shrunk":  {func(p *place) { p.write("rows.jsonl", numbers(9)) }, []string{"--jq", doubling}},
		"handler": {func(*place) {}, []string{"--jq", `{triple: (.n * 3)}`}},
		"key":     {func(*place) {}, []string{"--jq", doubling, "--key", "n"}},
	}
	for name, c := range changes {
		t.Run(name, func(t *testing.T) {
			p := newJob(t, 10)
			p.ok("run", "rows.jsonl", "--jq", doubling)
			before := p.read("rows.results.jsonl")
			c.change(p)
			args := append([]string{"run", "rows.jsonl"}, c.args...)
			p.run(args...).wants(2, "changed", "--continue", "--fresh")
			if p.read("rows.results.jsonl") != before {
				t.Error("results were written though the job had changed")
			}
			p.ok(append(args, "--continue")...)
			if p.read("rows.results.jsonl") != before {
				t.Error("--continue did not keep the finished rows")
			}
			p.ok(append(args, "--fresh")...).wants(0, "moved aside")
			for _, pattern := range []string{"rows.windrow.db.old-*", "rows.results.jsonl.old-*"} {
				if len(p.files(pattern)) != 1 {
					t.Errorf("%s: %v, want one", pattern, p.files(pattern))
				}
			}
			old := p.files("rows.windrow.db.old-*")[0]
			if n := p.file(old).done(); n != 10 {
				t.Errorf("the database moved aside has %d rows done, want 10", n)
			}
		})
	}
}

func TestOtherSpeedsAreNoChange(t *testing.T) {
	p := newJob(t, 10)
	p.ok("run", "rows.jsonl", "--exec", "cat")
	p.ok("run", "rows.jsonl", "--exec", "cat", "-j", "7", "--timeout", "1m", "--lease", "5s", "--grace", "1s",
		"--max-batch", "3", "--max-attempts", "9", "--max-failures", "none", "-q")
	// The same bytes, touched.
	if err := os.Chtimes(p.path("rows.jsonl"), time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	p.ok("run", "rows.jsonl", "--exec", "cat").wants(0, "10 done").lacks("loaded")
}

func TestContinueWithAnotherHandlerWorksTheRestWithIt(t *testing.T) {
	p := newJob(t, 10)
	p.ok("run", "rows.jsonl", "--limit", "4", "--jq", doubling)
	p.run("run", "rows.jsonl", "--jq", `{triple: (.n * 3)}`).wants(2)
	p.ok("run", "rows.jsonl", "--jq", `{triple: (.n * 3)}`, "--continue")
	results := p.read("rows.results.jsonl")
	if strings.Count(results, "double") != 4 || strings.Count(results, "triple") != 6 {
		t.Errorf("results: %s", results)
	}
}

func TestFreshNeverDeletes(t *testing.T) {
	p := newJob(t, 3)
	const starts = 3
	for range starts {
		p.ok("run", "rows.jsonl", "--jq", doubling, "--fresh", "--errors", "errors.jsonl")
	}
	for _, pattern := range []string{"rows.windrow.db.old-*", "rows.results.jsonl.old-*", "errors.jsonl.old-*"} {
		if got := p.files(pattern); len(got) != starts-1 {
			t.Errorf("%d times begun anew, %v were kept", starts-1, got)
		}
	}
}

func TestFreshKeepsTheResultsOfAKilledRun(t *testing.T) {
	p := newJob(t, 40)
	args := []string{"run", "rows.jsonl", "-j", "2", "--exec", `if [ "$WINDROW_ROW_ID" -gt 20 ]; then ` + untilGo + `fi; echo done`}
	run := p.start(args...)
	eventually(t, "half is done", func() bool { return len(p.lines("begun")) == 2 && p.file("rows.windrow.db").done() >= 10 })
	run.kill()
	p.write("go", "")
	p.ok(append(args, "--fresh")...).wants(0, "40 done")
	old := ""
	for _, name := range p.files("rows.windrow.db.old-*") {
		if !strings.HasSuffix(name, "-wal") && !strings.HasSuffix(name, "-shm") {
			old = name
		}
	}
	if n := p.file(old).done(); n < 10 {
		t.Errorf("the database moved aside, %s, has %d rows done, want 10 and more", old, n)
	}
}
