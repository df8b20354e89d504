package main_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// listed is what a line of schedule list --json says, as far as the tests ask.
type listed struct {
	Name     string      `json:"name"`
	Rule     string      `json:"rule"`
	Timezone string      `json:"timezone"`
	Lock     string      `json:"lock"`
	Next     []time.Time `json:"next"`
	PausedAt *time.Time  `json:"paused_at"`
	Asked    *scheduled  `json:"asked"`
	Running  *scheduled  `json:"running"`
	Last     *scheduled  `json:"last"`
	HeldBy   *scheduled  `json:"lock_held_by"`
}

// scheduled is a run of a schedule.
type scheduled struct {
	ID         int64  `json:"id"`
	State      string `json:"state"`
	OnDemand   bool   `json:"on_demand"`
	ExitStatus *int   `json:"exit_status"`
	Output     string `json:"output"`
	Error      string `json:"error"`
}

func (p *place) schedules() []listed {
	p.t.Helper()
	return linesOf[listed](p.t, p.ok("schedule", "list", "--json").stdout)
}

func (p *place) history(name string) []scheduled {
	p.t.Helper()
	return linesOf[scheduled](p.t, p.ok("schedule", "history", name, "--json").stdout)
}

func linesOf[T any](t *testing.T, text string) []T {
	t.Helper()
	var all []T
	for line := range strings.Lines(text) {
		var one T
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, one)
	}
	return all
}

func TestScheduleUsage(t *testing.T) {
	t.Parallel()
	p := newPlainPlace(t)
	p.ok("schedule", "add", "a", "--every", "1h", "--", "true")
	for words, says := range map[string]string{
		"schedule":               "schedule what?",
		"schedule nonsense":      "nonsense",
		"schedule add":           "add which schedule?",
		"schedule add -- true":   "add which schedule?",
		"schedule add b -- true": "--every, --cron, --at, --in",
		"schedule add b --every 1h --in 1h -- true":          "--every, --cron, --at, --in",
		"schedule add b --every 1h":                          "behind --",
		"schedule add b --every 1ms -- true":                 "--every",
		"schedule add b --cron @every -- true":               "--cron",
		"schedule add b --every 1h --timezone Local -- true": "--timezone",
		"schedule add b --every 1h --timezone X/Y -- true":   "--timezone",
		"schedule add b --at tomorrow -- true":               "--at tomorrow",
		"schedule add b --every 1h --missed twice -- true":   "missed",
		"schedule add b/c --every 1h -- true":                "b/c",
		"schedule add none --every 1h -- true":               "none",
		"schedule add b --every 1h --timeout -1s -- true":    "timeout",
		"schedule show":                "--run",
		"schedule show a --run 1":      "--run",
		"schedule pause":               "which schedule?",
		"schedule cancel one":          "one",
		"schedule history a --limit 0": "--limit",
		"schedule tick":                "--allow-commands",
		"schedule serve":               "--allow-commands",
		"schedule remove a":            "--yes",
	} {
		p.run(strings.Fields(words)...).wants(2, says)
	}
	p.run("schedule", "add", "b", "--at", "2025-03-09 02:30", "--timezone", "America/Los_Angeles", "--", "true").wants(2, "no clock in America/Los_Angeles")
	for words, says := range map[string]string{
		"schedule add a --every 1h -- true":                 "there is a schedule of that name",
		"schedule add b --at 2020-01-01T00:00:00Z -- true":  "has passed",
		"schedule show b":                                   "not found",
		"schedule show --run 99":                            "not found",
		"schedule run-now b":                                "not found",
		"schedule cancel 99":                                "not found",
		"schedule history b":                                "not found",
		"schedule list --database none.db":                  "there is no database at",
		"schedule tick --allow-commands --database none.db": "there is no database at",
	} {
		p.run(strings.Fields(words)...).wants(1, says)
	}
	p.ok("schedule", "tick", "--help").lacks("WINDROW_ALLOW_COMMANDS")
}

func TestATickRunsWhatIsDueAndSaysHowItWas(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		p.ok("schedule", "add", "good", "--in", "1ms", "--", "sh", "-c", "echo $WINDROW_RUN_SCHEDULE ran")
		p.ok("schedule", "add", "later", "--cron", "0 3 * * *", "--timezone", "Europe/Warsaw", "--", "true").prints("next at", "03:00 CE")
		p.ok("schedule", "tick", "--allow-commands", "--exit-code")
		p.run("schedule", "tick", "--allow-commands", "--exit-code").wants(4)
		p.ok("schedule", "tick", "--allow-commands")
		p.ok("schedule", "show", "good").prints("done", "good ran", "once")
		p.ok("schedule", "add", "bad", "--in", "1ms", "--", "sh", "-c", "echo why >&2; exit 7")
		p.run("schedule", "tick", "--allow-commands").wants(3, "1 run did not end well")
		runs := p.history("bad")
		if len(runs) != 1 || *runs[0].ExitStatus != 7 || runs[0].Output != "why\n" || runs[0].State != "failed" || runs[0].OnDemand {
			t.Errorf("%+v", runs)
		}
		p.ok("schedule", "history", "bad").prints("regular", "exit status 7", "failed")
		p.ok("schedule", "list").prints("NAME", "failed (exit status 7)", "cron 0 3 * * *", "free", "done")
		list := p.schedules()
		if len(list) != 3 || list[2].Timezone != "Europe/Warsaw" || len(list[2].Next) != 3 || list[1].Last.State != "done" {
			t.Errorf("%+v", list)
		}
	})
}

func TestADaemonIsWokenAndAScheduledCommandOfWindrowFindsItsDatabase(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		p.write("rows.jsonl", numbers(3))
		p.ok("load", "rows.jsonl")
		p.ok("schedule", "add", "count", "--every", "24h", "--", "sh", "-c", "cd / && exec "+p.program+" status --json")
		p.ok("schedule", "add", "long", "--every", "24h", "--lock", "group", "--", "sleep", "1000")
		p.ok("schedule", "add", "other", "--every", "24h", "--lock", "group", "--", "true")
		daemon := p.start("schedule", "serve", "--allow-commands", "--grace", "0s")
		asked := strings.TrimSpace(p.ok("schedule", "run-now", "count").stdout)
		eventually(t, "it has run", func() bool { return len(p.history("count")) == 1 })
		if run := p.history("count")[0]; fmt.Sprint(run.ID) != asked || !run.OnDemand || !contains(run.Output, `"total":3`) {
			t.Errorf("asked for %s: %+v", asked, run)
		}

		long := strings.TrimSpace(p.ok("schedule", "run-now", "long").stdout)
		eventually(t, "it is running", func() bool { return p.schedules()[1].Running != nil })
		p.ok("schedule", "run-now", "other")
		p.run("schedule", "run-now", "other").wants(1, "waiting already")
		p.run("schedule", "tick", "--allow-commands", "--exit-code").wants(5)
		if list := p.schedules(); list[2].Asked == nil || list[2].HeldBy == nil || fmt.Sprint(list[2].HeldBy.ID) != long {
			t.Errorf("%+v", list[2])
		}
		p.ok("schedule", "list").prints("group: run " + long + " of long on ")
		p.ok("schedule", "cancel", long).prints("was asked to stop")
		eventually(t, "the other has run", func() bool { return len(p.history("other")) == 1 })
		if run := p.history("long")[0]; run.State != "cancelled" || !contains(run.Error, "cancelled by") {
			t.Errorf("%+v", run)
		}
		p.run("schedule", "cancel", long).wants(1, "is over")

		p.ok("schedule", "run-now", "long")
		eventually(t, "it is running", func() bool { return p.schedules()[1].Running != nil })
		daemon.signal(syscall.SIGTERM)
		daemon.end().wants(0)
		if run := p.history("long")[0]; run.State != "failed" || run.Error != "the scheduler was stopped" {
			t.Errorf("%+v", run)
		}
	})
}

func TestPauseResumeAndRemove(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		p.ok("schedule", "add", "a", "--in", "1ms", "--", "true")
		p.ok("schedule", "pause", "a")
		p.run("schedule", "tick", "--allow-commands", "--exit-code").wants(4)
		p.ok("schedule", "list").prints("paused by")
		p.ok("schedule", "resume", "a")
		p.ok("schedule", "tick", "--allow-commands", "--exit-code")
		p.ok("schedule", "remove", "a", "--yes").prints("removed")
		if list := p.schedules(); len(list) != 0 {
			t.Errorf("%+v", list)
		}
		if runs := p.history("a"); len(runs) != 1 {
			t.Errorf("%+v", runs)
		}
	})
}
