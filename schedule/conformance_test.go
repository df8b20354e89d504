package schedule_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/windrow-go/windrow/schedule"
)

func TestASchedulesFirstRunIsEnteredWithIt(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		before := time.Now()
		run := f.add(schedule.Schedule{Name: "nightly", Rule: every(t, time.Hour), Command: []string{"echo", "a\\b 'c' ü"}, CreatedBy: "me"})
		equal(t, "state", run.State, schedule.Waiting)
		if d := run.DueAt.Sub(before); d < time.Hour-time.Minute || d > time.Hour+time.Minute {
			t.Errorf("due in %s", d)
		}
		o := f.get("nightly")
		equal(t, "rule", o.Rule.String(), "every 1h")
		equal(t, "lock", o.Lock, "nightly")
		equal(t, "missed", o.Missed, schedule.RunOnce)
		equal(t, "command", strings.Join(o.Command, "|"), "echo|a\\b 'c' ü")
		equal(t, "function", o.Function, "")
		equal(t, "created by", o.Schedule.CreatedBy, "me")
		equal(t, "next run", o.Next.ID, run.ID)
		coming := o.Coming(3)
		if len(coming) != 3 || !coming[0].Equal(run.DueAt) || !coming[2].Equal(run.DueAt.Add(2*time.Hour)) {
			t.Errorf("coming %v, due %v", coming, run.DueAt)
		}
		if o.Asked != nil || o.Running != nil || o.Last != nil || o.Occupant != nil || o.Broken != "" || o.PausedAt != nil {
			t.Errorf("%+v", o)
		}
	})
}

func TestWhatAStoreRefuses(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		f.every("a", time.Hour)
		soon := time.Now().Add(time.Minute)
		past := schedule.Schedule{Name: "b", Rule: schedule.Once(), At: time.Now().Add(-time.Second), Function: "f"}
		tests := []struct {
			what string
			want error
			do   func() (schedule.Run, error)
		}{
			{"a second of that name", schedule.ErrExists, func() (schedule.Run, error) {
				return f.Add(ctx, schedule.Schedule{Name: "a", Rule: every(t, time.Minute), Function: "f"})
			}},
			{"one in the past", schedule.ErrPast, func() (schedule.Run, error) { return f.Add(ctx, past) }},
			{"a run in the past", schedule.ErrPast, func() (schedule.Run, error) { return f.Enter(ctx, "a", past.At, "me") }},
			{"a second regular run", schedule.ErrWaiting, func() (schedule.Run, error) { return f.Enter(ctx, "a", soon, "me") }},
			{"a run of no schedule", schedule.ErrNotFound, func() (schedule.Run, error) { return f.Enter(ctx, "b", soon, "me") }},
			{"one now of no schedule", schedule.ErrNotFound, func() (schedule.Run, error) { return f.RunNow(ctx, "b", "me") }},
			{"a first now", nil, func() (schedule.Run, error) { return f.RunNow(ctx, "a", "me") }},
			{"a second now", schedule.ErrWaiting, func() (schedule.Run, error) { return f.RunNow(ctx, "a", "me") }},
			{"a cancel of no run", schedule.ErrNotFound, func() (schedule.Run, error) { return f.Cancel(ctx, 99, "me") }},
			{"no such schedule", schedule.ErrNotFound, func() (schedule.Run, error) { _, err := f.Get(ctx, "b"); return schedule.Run{}, err }},
			{"no such history", schedule.ErrNotFound, func() (schedule.Run, error) { _, err := f.History(ctx, "b", 9); return schedule.Run{}, err }},
			{"no such run", schedule.ErrNotFound, func() (schedule.Run, error) { return f.Run(ctx, 99) }},
			{"no pause", schedule.ErrNotFound, func() (schedule.Run, error) { return schedule.Run{}, f.Pause(ctx, "b", "me") }},
			{"no resume", schedule.ErrNotFound, func() (schedule.Run, error) { return schedule.Run{}, f.Resume(ctx, "b") }},
			{"no removal", schedule.ErrNotFound, func() (schedule.Run, error) { return schedule.Run{}, f.Remove(ctx, "b") }},
		}
		for _, tt := range tests {
			if _, err := tt.do(); !errors.Is(err, tt.want) {
				t.Errorf("%s: got %v, want %v", tt.what, err, tt.want)
			}
		}
		equal(t, "waiting runs", f.count(`state = 'waiting'`), 2)
		equal(t, "schedules", len(f.list()), 1)
	})
}

func (f *fixture) list() []schedule.Overview {
	f.t.Helper()
	list, err := f.List(f.t.Context())
	check(f.t, err)
	return list
}

func TestSchedulesThatMakeNoSenseAreRefused(t *testing.T) {
	rule := every(t, time.Hour)
	f := onSQLite(t, nil)
	for name, s := range map[string]schedule.Schedule{
		"no name":              {Rule: rule, Function: "f"},
		"a name with spaces":   {Name: "a b", Rule: rule, Function: "f"},
		"a name like a flag":   {Name: "-a", Rule: rule, Function: "f"},
		"a name of no lock":    {Name: "none", Rule: rule, Function: "f"},
		"a long name":          {Name: strings.Repeat("a", 201), Rule: rule, Function: "f"},
		"no rule":              {Name: "a", Function: "f"},
		"once, and no time":    {Name: "a", Rule: schedule.Once(), Function: "f"},
		"a time, and not once": {Name: "a", Rule: rule, At: time.Now().Add(time.Hour), Function: "f"},
		"nothing to run":       {Name: "a", Rule: rule},
		"two things to run":    {Name: "a", Rule: rule, Function: "f", Command: []string{"true"}},
		"no program":           {Name: "a", Rule: rule, Command: []string{""}},
		"NUL":                  {Name: "a", Rule: rule, Command: []string{"echo", "\x00"}},
		"a negative timeout":   {Name: "a", Rule: rule, Function: "f", Timeout: -1},
		"what if missed":       {Name: "a", Rule: rule, Function: "f", Missed: "twice"},
		"a lock with a slash":  {Name: "a", Rule: rule, Function: "f", Lock: "a/b"},
	} {
		if _, err := f.Add(t.Context(), s); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestCancellingARegularRunThatWaitsEntersTheOneAfterIt(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		run := f.every("a", time.Hour)
		cancelled, err := f.Cancel(t.Context(), run.ID, "me")
		check(t, err)
		equal(t, "state", cancelled.State, schedule.Cancelled)
		equal(t, "by", cancelled.Cancelled, "me")
		next := f.get("a").Next
		if next == nil || !next.DueAt.Equal(run.DueAt.Add(time.Hour)) {
			t.Fatalf("next %+v, cancelled %s", next, run.DueAt)
		}
		asked, err := f.RunNow(t.Context(), "a", "me")
		check(t, err)
		_, err = f.Cancel(t.Context(), asked.ID, "me")
		check(t, err)
		equal(t, "next", f.get("a").Next.ID, next.ID)
		if _, err := f.Cancel(t.Context(), asked.ID, "me"); !errors.Is(err, schedule.ErrFinished) {
			t.Errorf("twice: %v", err)
		}
		if f.get("a").Asked != nil {
			t.Error("it still waits")
		}
	})
}

func TestAPausedScheduleStartsNothing(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		f.every("a", time.Hour)
		f.ago("a", time.Second)
		check(t, f.Pause(t.Context(), "a", "me"))
		_, err := f.RunNow(t.Context(), "a", "me")
		check(t, err)
		equal(t, "paused", f.tick(noop), schedule.Ticked{})
		equal(t, "paused by", f.get("a").PausedBy, "me")
		check(t, f.Resume(t.Context(), "a"))
		equal(t, "started", f.tick(noop).Started, 2)
	})
}

func TestARemovedScheduleLeavesItsHistoryAndNothingAhead(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		run := f.every("a", time.Hour)
		f.ago("a", time.Second)
		f.tick(noop)
		ahead := f.get("a").Next
		_, err := f.Cancel(t.Context(), ahead.ID, "me")
		check(t, err)
		_, err = f.RunNow(t.Context(), "a", "me")
		check(t, err)
		check(t, f.Remove(t.Context(), "a"))
		equal(t, "runs", f.count(`true`), 1)
		history, err := f.History(t.Context(), "a", 10)
		check(t, err)
		equal(t, "history", len(history), 1)
		equal(t, "run", history[0].ID, run.ID)
		f.every("a", time.Hour)
		equal(t, "last result", f.get("a").Last.ID, run.ID)
	})
}

func TestHistoryTellsRegularFromOnDemandAndTheLatestComesFirst(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		regular := f.add(schedule.Schedule{Name: "a", Rule: every(t, time.Hour), Command: []string{"sh", "-c", "echo out; echo err >&2; exit 3"}})
		f.ago("a", time.Second)
		equal(t, "ticked", f.tick(noop), schedule.Ticked{Started: 1, Failed: 1})
		asked, err := f.RunNow(t.Context(), "a", "somebody")
		check(t, err)
		f.tick(noop)
		history, err := f.History(t.Context(), "a", 10)
		check(t, err)
		equal(t, "runs", len(history), 2)
		first, second := history[0], history[1]
		equal(t, "latest", first.ID, asked.ID)
		equal(t, "on demand", first.OnDemand, true)
		equal(t, "asked by", first.CreatedBy, "somebody")
		equal(t, "earlier", second.ID, regular.ID)
		equal(t, "regular", second.OnDemand, false)
		equal(t, "state", second.State, schedule.Failed)
		equal(t, "exit status", *second.ExitStatus, 3)
		equal(t, "error", second.Error, "exit status 3")
		equal(t, "output", second.Output, "out\nerr\n")
		if second.Duration() <= 0 || second.Holder == "" {
			t.Errorf("%+v", second)
		}
		one, err := f.History(t.Context(), "a", 1)
		check(t, err)
		equal(t, "limited", len(one), 1)
		equal(t, "listed", f.list()[0].Last.ID, asked.ID)
	})
}

func TestALateStartDoesNotEndAScheduleAndMissedTimesBecomeOneRun(t *testing.T) {
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		name           string
		rule           schedule.Rule
		missed         schedule.Missed
		late           time.Duration // after the due time
		want           schedule.Ticked
		nextAfterStart time.Duration // after the due time
	}{
		{"on time", every(t, 15*time.Minute), schedule.RunOnce, 0, schedule.Ticked{Started: 1}, 15 * time.Minute},
		{"a little late", every(t, 15*time.Minute), schedule.RunOnce, time.Minute, schedule.Ticked{Started: 1}, 15 * time.Minute},
		{"off for a year", every(t, 15*time.Minute), schedule.RunOnce, 365*24*time.Hour + time.Minute, schedule.Ticked{Started: 1}, 365*24*time.Hour + 15*time.Minute},
		{"every second, off for a year", every(t, time.Second), schedule.RunOnce, 365 * 24 * time.Hour, schedule.Ticked{Started: 1}, 365*24*time.Hour + time.Second},
		{"skip, on time", every(t, 15*time.Minute), schedule.Skip, time.Minute, schedule.Ticked{Started: 1}, 15 * time.Minute},
		{"skip, off for a day", every(t, 15*time.Minute), schedule.Skip, 24*time.Hour + time.Minute, schedule.Ticked{Skipped: 1}, 24*time.Hour + 15*time.Minute},
		{"cron, off for a day", cronRule(t, "15 * * * *", "UTC"), schedule.RunOnce, 24*time.Hour + time.Minute, schedule.Ticked{Started: 1}, 25 * time.Hour},
		{"cron, skip", cronRule(t, "15 12 * * *", "UTC"), schedule.Skip, 3 * time.Minute, schedule.Ticked{Skipped: 1}, 24 * time.Hour},
	}
	onEachAt(t, noon, func(t *testing.T, f *fixture) {
		for _, tt := range tests {
			f.clock.set(noon)
			run := f.add(schedule.Schedule{Name: "a", Rule: tt.rule, Missed: tt.missed})
			f.clock.set(run.DueAt.Add(tt.late))
			equal(t, tt.name, f.tick(noop), tt.want)
			next := f.get("a").Next
			if next == nil || !next.DueAt.Equal(run.DueAt.Add(tt.nextAfterStart)) {
				t.Fatalf("%s: next %+v, want %s", tt.name, next, run.DueAt.Add(tt.nextAfterStart))
			}
			equal(t, tt.name+", again", f.tick(noop), schedule.Ticked{})
			check(t, f.Remove(t.Context(), "a"))
			f.exec(`DELETE FROM {runs}`)
		}
	})
}

// A run on demand was asked for, and is not missed.
func TestOnDemandRunsAreNeverSkipped(t *testing.T) {
	onEachAt(t, time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), func(t *testing.T, f *fixture) {
		f.add(schedule.Schedule{Name: "a", Rule: every(t, time.Hour), Missed: schedule.Skip})
		_, err := f.RunNow(t.Context(), "a", "me")
		check(t, err)
		f.clock.set(f.clock.now().Add(30 * time.Minute))
		equal(t, "ticked", f.tick(noop), schedule.Ticked{Started: 1})
	})
}

func TestAClockThatIsSetBackNeitherRepeatsNorEndsASchedule(t *testing.T) {
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	onEachAt(t, noon, func(t *testing.T, f *fixture) {
		run := f.add(schedule.Schedule{Name: "a", Rule: cronRule(t, "0 * * * *", "UTC")})
		f.clock.set(run.DueAt)
		equal(t, "ticked", f.tick(noop), schedule.Ticked{Started: 1})
		f.clock.set(noon.Add(-3 * time.Hour))
		equal(t, "set back", f.tick(noop), schedule.Ticked{})
		// The run ahead is cancelled; the times up to it are over, by the rows.
		_, err := f.Cancel(t.Context(), f.get("a").Next.ID, "me")
		check(t, err)
		if _, err := f.Enter(t.Context(), "a", run.DueAt, "me"); !errors.Is(err, schedule.ErrWaiting) {
			t.Errorf("a second run: %v", err)
		}
		equal(t, "next", f.get("a").Next.DueAt, run.DueAt.Add(2*time.Hour))
	})
}

func TestOnceMeansOnce(t *testing.T) {
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	onEachAt(t, noon, func(t *testing.T, f *fixture) {
		f.add(schedule.Schedule{Name: "a", Rule: schedule.Once(), At: noon.Add(time.Hour)})
		equal(t, "coming", len(f.get("a").Coming(3)), 1)
		f.clock.set(noon.Add(time.Hour))
		equal(t, "ticked", f.tick(noop), schedule.Ticked{Started: 1})
		equal(t, "coming", len(f.get("a").Coming(3)), 0)
		f.clock.set(noon.Add(1000 * time.Hour))
		equal(t, "ticked", f.tick(noop), schedule.Ticked{})
		// It can be entered again, at another time.
		if _, err := f.Enter(t.Context(), "a", noon.Add(time.Hour), "me"); !errors.Is(err, schedule.ErrPast) {
			t.Errorf("the same time: %v", err)
		}
		_, err := f.Enter(t.Context(), "a", noon.Add(1001*time.Hour), "me")
		check(t, err)
		f.clock.set(noon.Add(1001 * time.Hour))
		equal(t, "ticked", f.tick(noop), schedule.Ticked{Started: 1})
	})
}

// The days that matter, lived through minute by minute as with cron.
func TestDaysThatLoseOrGainAnHourAreLivedThrough(t *testing.T) {
	tests := []struct {
		cron, zone, day string
		want            int
	}{
		{"0 2 * * *", angeles, "2025-03-09", 1},
		{"30 1 * * *", angeles, "2025-11-02", 1},
		{"0 * * * *", angeles, "2025-03-09", 23},
		{"0 * * * *", angeles, "2025-11-02", 25},
		{"30 2 * * *", warsaw, "2026-03-29", 1},
		{"30 2 * * *", warsaw, "2026-10-25", 1},
		{"0 * * * *", warsaw, "2026-10-25", 25},
		{"0 * * * *", tokyo, "2026-10-25", 24},
		{"15 2 * * *", howe, "2025-10-05", 1},
		{"45 1 * * *", howe, "2025-04-06", 1},
		{"45 * * * *", howe, "2025-04-06", 25},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s %s %s", tt.cron, tt.zone, tt.day), func(t *testing.T) {
			begin, err := time.ParseInLocation(time.DateOnly, tt.day, zone(t, tt.zone))
			check(t, err)
			end := begin.AddDate(0, 0, 1)
			f := onSQLite(t, &clock{at: begin.Add(-time.Second)})
			f.add(schedule.Schedule{Name: "a", Rule: cronRule(t, tt.cron, tt.zone)})
			got := 0
			for at := begin; at.Before(end); at = at.Add(15 * time.Minute) {
				f.clock.set(at)
				got += f.tick(noop).Started
			}
			equal(t, "runs", got, tt.want)
		})
	}
}

func TestARuleThatSomebodyHasSpoiltIsToldOfAndHurtsNobodyElse(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		f.every("a", time.Hour)
		f.every("b", time.Hour)
		f.ago("a", time.Minute)
		f.ago("b", time.Second)
		f.exec(`UPDATE {schedules} SET rule = 'cron nonsense' WHERE name = 'a'`)
		if broken := f.get("a").Broken; !strings.Contains(broken, "nonsense") {
			t.Errorf("told: %q", broken)
		}
		if ticked := f.tick(noop); ticked.Started != 1 || ticked.Failed != 0 {
			t.Errorf("ticked %+v", ticked)
		}
		equal(t, "b", f.get("b").Last.State, schedule.Done)
	})
}

func TestTheViewShowsALineForEachSchedule(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		f.add(schedule.Schedule{Name: "a", Rule: every(t, time.Hour), Command: []string{"sh", "-c", "exit 7"}})
		f.every("b", time.Hour)
		f.ago("a", time.Second)
		f.tick(noop)
		_, err := f.RunNow(t.Context(), "a", "me")
		check(t, err)
		var rows []struct {
			Name, Rule, LastState, AskedBy string
			LastExitStatus                 *int
			NextAt                         *string
		}
		columns := `name, rule, coalesce(last_state, '') AS last_state, coalesce(asked_by, '') AS asked_by, last_exit_status, CAST(next_at AS text) AS next_at`
		check(t, f.raw.Raw(`SELECT `+columns+` FROM `+f.table("schedule_overview")+` ORDER BY name`).Scan(&rows).Error)
		equal(t, "lines", len(rows), 2)
		a, b := rows[0], rows[1]
		if a.Name != "a" || a.Rule != "every 1h" || a.LastState != "failed" || a.AskedBy != "me" || *a.LastExitStatus != 7 || a.NextAt == nil {
			t.Errorf("%+v", a)
		}
		if b.LastState != "" || b.AskedBy != "" || b.NextAt == nil {
			t.Errorf("%+v", b)
		}
	})
}
