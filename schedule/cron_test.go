package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/windrow-go/windrow/schedule"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	zone, err := schedule.LoadZone(name)
	check(t, err)
	return zone
}

func cronRule(t testing.TB, expression, zoneName string) schedule.Rule {
	t.Helper()
	rule, err := schedule.Cron(expression, zone(t, zoneName))
	check(t, err)
	return rule
}

// timesOn lists what a rule's times on a day are on the zone's wall, with the offset
// from UTC where the day has more than one.
func timesOn(t testing.TB, rule schedule.Rule, zoneName, day string) []string {
	t.Helper()
	at := zone(t, zoneName)
	begin, err := time.ParseInLocation(time.DateOnly, day, at)
	check(t, err)
	end := begin.AddDate(0, 0, 1)
	var times []string
	for next := rule.Next(begin.Add(-time.Second), begin.Add(-time.Second)); next.Before(end); next = rule.Next(next, next) {
		times = append(times, next.In(at).Format("15:04-07:00"))
	}
	return times
}

const (
	angeles = "America/Los_Angeles" // 2025-03-09 02:00 -08 to 03:00 -07; 2025-11-02 02:00 -07 to 01:00 -08
	warsaw  = "Europe/Warsaw"       // 2026-03-29 02:00 +01 to 03:00 +02; 2026-10-25 03:00 +02 to 02:00 +01
	tokyo   = "Asia/Tokyo"          // never
	howe    = "Australia/Lord_Howe" // 2025-10-05 02:00 +10:30 to 02:30 +11; 2025-04-06 02:00 +11 to 01:30 +10:30
	azores  = "Atlantic/Azores"     // 2026-03-29 00:00 -01 to 01:00 +00
)

func TestTimesOfDaysThatLoseOrGainAnHour(t *testing.T) {
	tests := []struct {
		cron, zone, day, want string
	}{
		{"0 2 * * *", angeles, "2025-03-09", "03:00-07:00"},
		{"30 2 * * *", angeles, "2025-03-09", "03:00-07:00"},
		{"*/10 2 * * *", angeles, "2025-03-09", "03:00-07:00"},
		{"0 2,3 * * *", angeles, "2025-03-09", "03:00-07:00"}, // both are the same moment
		{"15 2,3 * * *", angeles, "2025-03-09", "03:00-07:00 03:15-07:00"},
		{"0 2 * * *", angeles, "2025-03-08", "02:00-08:00"},
		{"0 2 * * *", angeles, "2025-03-10", "02:00-07:00"},
		{"0 2 9 3 *", angeles, "2025-03-09", "03:00-07:00"},
		{"0 2 10 3 *", angeles, "2025-03-09", ""},
		{"30 1 * * *", angeles, "2025-11-02", "01:30-07:00"},
		{"0,30 1 * * *", angeles, "2025-11-02", "01:00-07:00 01:30-07:00"},
		{"0 2 * * *", angeles, "2025-11-02", "02:00-08:00"},
		{"59 0-2 * * *", angeles, "2025-11-02", "00:59-07:00 01:59-07:00 02:59-08:00"},
		{"30 2 * * *", warsaw, "2026-03-29", "03:00+02:00"},
		{"0 3 * * *", warsaw, "2026-03-29", "03:00+02:00"},
		{"30 2 * * *", warsaw, "2026-10-25", "02:30+02:00"},
		{"0 3 * * *", warsaw, "2026-10-25", "03:00+01:00"},
		{"0 0 * * *", azores, "2026-03-29", "01:00+00:00"}, // midnight is skipped
		{"0 2 * * *", tokyo, "2025-03-09", "02:00+09:00"},
		{"30 1 * * *", tokyo, "2025-11-02", "01:30+09:00"},
		{"0 2 * * *", howe, "2025-10-05", "02:30+11:00"},
		{"15 2 * * *", howe, "2025-10-05", "02:30+11:00"},
		{"30 2 * * *", howe, "2025-10-05", "02:30+11:00"},
		{"45 2 * * *", howe, "2025-10-05", "02:45+11:00"},
		{"45 1 * * *", howe, "2025-04-06", "01:45+11:00"},
		{"0 2 * * *", howe, "2025-04-06", "02:00+10:30"},
	}
	for _, tt := range tests {
		got := strings.Join(timesOn(t, cronRule(t, tt.cron, tt.zone), tt.zone, tt.day), " ")
		if got != tt.want {
			t.Errorf("%s, %s, %s: got %q, want %q", tt.cron, tt.zone, tt.day, got, tt.want)
		}
	}
}

func TestHourlyRulesFollowTheTimeThatPasses(t *testing.T) {
	tests := []struct {
		cron, zone, day string
		want            int
	}{
		{"0 * * * *", angeles, "2025-03-09", 23},
		{"15 * * * *", angeles, "2025-03-09", 23},
		{"0 * * * *", angeles, "2025-03-10", 24},
		{"0 * * * *", angeles, "2025-11-02", 25},
		{"@hourly", angeles, "2025-11-02", 25},
		{"*/15 * * * *", angeles, "2025-11-02", 100},
		{"* * * * *", angeles, "2025-03-09", 23 * 60},
		{"0 * * * *", warsaw, "2026-03-29", 23},
		{"0 * * * *", warsaw, "2026-10-25", 25},
		{"0 * * * *", tokyo, "2026-03-29", 24},
		{"0 * * * *", howe, "2025-10-05", 23},  // 02:00 is skipped
		{"30 * * * *", howe, "2025-10-05", 24}, // 02:30 is not
		{"0 * * * *", howe, "2025-04-06", 24},  // 02:00 comes once
		{"30 * * * *", howe, "2025-04-06", 25}, // 01:30 comes twice
	}
	for _, tt := range tests {
		got := timesOn(t, cronRule(t, tt.cron, tt.zone), tt.zone, tt.day)
		if len(got) != tt.want {
			t.Errorf("%s, %s, %s: got %d, want %d: %v", tt.cron, tt.zone, tt.day, len(got), tt.want, got)
		}
	}
}

// Every rule with a fixed hour has one run a day, whatever the zone does.
func TestADailyRuleRunsOnceADayInEveryZone(t *testing.T) {
	for _, name := range []string{angeles, warsaw, tokyo, howe, azores, "America/Sao_Paulo", "Africa/Cairo", "Pacific/Apia", "UTC"} {
		for _, expression := range []string{"0 0 * * *", "15 1 * * *", "0 2 * * *", "59 2 * * *", "30 23 * * *"} {
			rule := cronRule(t, expression, name)
			begin := time.Date(2010, 1, 1, 12, 0, 0, 0, zone(t, name))
			end := time.Date(2013, 1, 1, 12, 0, 0, 0, zone(t, name))
			runs, want := 0, 1096
			for at := rule.Next(begin, begin); at.Before(end); at = rule.Next(at, at) {
				runs++
			}
			if name == "Pacific/Apia" && expression == "0 0 * * *" {
				want-- // it left 2011-12-30 out: what is due then is due when the next day begins
			}
			if runs != want {
				t.Errorf("%s in %s: %d runs, want %d", expression, name, runs, want)
			}
		}
	}
}

func TestEitherDayWillDoWhereBothAreRestricted(t *testing.T) {
	rule := cronRule(t, "0 0 13 * 5", "UTC")
	from := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	var got []string
	for _, at := range rule.Coming(rule.Next(from, from), from, 3) {
		got = append(got, at.Format(time.DateOnly))
	}
	if want := "2026-11-06 2026-11-13 2026-11-20"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestRulesThatMakeNoSenseAreRefused(t *testing.T) {
	for expression, why := range map[string]string{
		"":                             "",
		"* * * *":                      "",
		"0 0 0 * * *":                  "",
		"61 * * * *":                   "",
		"0 0 30 2 *":                   "no day is like that",
		"@every 5m":                    "use every",
		"@reboot":                      "",
		"TZ=UTC":                       "time zone",
		"CRON_TZ=Asia/Tokyo * * * * *": "time zone",
	} {
		if _, err := schedule.Cron(expression, time.UTC); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v", expression, err)
		}
	}
	for _, name := range []string{"Local", "Europe/Atlantis", "../etc/passwd"} {
		if _, err := schedule.LoadZone(name); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, d := range []time.Duration{0, -time.Hour, time.Millisecond} {
		if _, err := schedule.Every(d); err == nil {
			t.Errorf("%s is taken for an interval", d)
		}
	}
}

func TestIntervalsDoNotDriftAndMissedOnesCollapse(t *testing.T) {
	rule, err := schedule.Every(15 * time.Minute)
	check(t, err)
	due := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ now, want time.Duration }{
		{0, 15 * time.Minute}, // exactly on time
		{time.Second, 15 * time.Minute},
		{14*time.Minute + 59*time.Second, 15 * time.Minute},
		{15 * time.Minute, 30 * time.Minute},
		{1000*time.Hour + time.Minute, 1000*time.Hour + 15*time.Minute},
		{-time.Hour, 15 * time.Minute}, // a clock that was set back
	} {
		if got := rule.Next(due, due.Add(tt.now)); !got.Equal(due.Add(tt.want)) {
			t.Errorf("%s after the due time: next in %s, want %s", tt.now, got.Sub(due), tt.want)
		}
	}
	if text := rule.String(); text != "every 15m" {
		t.Errorf("its text is %q", text)
	}
}
