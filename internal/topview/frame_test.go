package topview_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/errorgroups"
	"github.com/windrow-go/windrow/internal/topview"
	"github.com/windrow-go/windrow/model"
)

func TestTheScreenTellsHowTheJobStands(t *testing.T) {
	slowed := worker("slow", 0, time.Second)
	slowed.Trouble = "connection refused"
	stopped := worker("over", 9, time.Second)
	stopped.StoppedAt = &noon
	s := watching(overview(worker("steady", 200, time.Second), stopped, slowed, worker("fast", 900.5, time.Second), worker("lost", 5000, time.Hour)))
	f := s.Frame(120, 30)
	wantHeld(t, f, 120, 30)
	wantWords(t, f,
		"alice@db.example.com:5432/jobs, schema windrow", "12:00:01",
		"29.8%", "298,000 of 1,000,000", "9 min 29 s left", "1,234 over the last minute",
		"fresh 700,000", "waiting 1,193", "in flight 800", "expired 7", "done 290,000", "failed 8,000",
		"2 live, 1 slowed: connection refused, 1 gone, 1 stopped",
		"of 8,000 rows, failed or waiting (1 s ago)", "7,000  exit status 1: no such customer", "999  HTTP 503", "1  other messages",
		"q quit", "p pause")
	wantNone(t, f, "PAUSED", "no answer", "≈")
	last := 0
	for _, host := range []string{"live     fast", "live     steady", "slowed   slow", "gone     lost", "stopped  over"} {
		at, _ := lineWith(t, f, host)
		if at <= last {
			t.Errorf("%s does not stand below the one before:\n%s", host, f)
		}
		last = at
	}
}

func TestEstimatesAreMarked(t *testing.T) {
	o := overview()
	o.Estimated, o.TotalEstimated = []model.State{model.Fresh}, true
	f := watching(o).Frame(100, 24)
	wantWords(t, f, "≈29.8%", "298,000 of ≈1,000,000", "≈9 min 29 s left", "fresh ≈700,000", "done 290,000")
	s := watching(o)
	s.ASCII = true
	f = s.Frame(100, 24)
	wantWords(t, f, "~29.8%", "fresh ~700,000", "####", "....")
	if text := f.String(); strings.IndexFunc(text, func(r rune) bool { return r > 126 }) >= 0 {
		t.Errorf("not ASCII:\n%s", text)
	}
}

func TestAHundredPerCentIsAll(t *testing.T) {
	o := overview()
	o.Counts = checkout.Counts{model.Done: 9_999_999, model.Fresh: 1}
	wantWords(t, watching(o).Frame(100, 24), "99.9%")
	o.Counts = checkout.Counts{model.Done: 10, model.Failed: 1}
	wantWords(t, watching(o).Frame(100, 24), "100.0%", "finished", "▓")
	o.Counts = checkout.Counts{}
	wantWords(t, watching(o).Frame(100, 24), "no rows yet", "no worker has been at work")
}

func TestAPauseIsABanner(t *testing.T) {
	o := overview()
	o.PausedBy = "bob@\x1b[31mhost"
	f := watching(o).Frame(80, 24)
	wantHeld(t, f, 80, 24)
	wantWords(t, f, "PAUSED by bob@", "p resume", "  paused  ")
	wantNone(t, f, " left")
}

func TestALostDatabaseIsToldAndTheLastStays(t *testing.T) {
	s := watching(overview(worker("a", 1, time.Second)))
	s.Lost("connection refused", noon.Add(5*time.Second))
	s.Lost("connection\nrefused", noon.Add(6*time.Second))
	s.Clock = noon.Add(75 * time.Second)
	f := s.Frame(80, 24)
	wantWords(t, f, "no answer since 12:00:05 (1 min 10 s): connection refused", "298,000", "live")
	if i, _ := lineWith(t, f, "no answer"); f[i][0].Style != topview.Alarm {
		t.Errorf("style %v", f[i][0].Style)
	}
	s.Saw(overview(), noon.Add(80*time.Second))
	wantNone(t, s.Frame(80, 24), "no answer")

	never := &topview.State{Clock: noon}
	wantWords(t, never.Frame(80, 24), "looking at the job")
	never.Lost("no such host", noon)
	wantWords(t, never.Frame(80, 24), "no such host")
}

func TestAnOldViewSaysHowOldItIs(t *testing.T) {
	s := watching(overview())
	wantNone(t, s.Frame(80, 24), "as of")
	s.Clock = noon.Add(4 * time.Second)
	wantWords(t, s.Frame(80, 24), "as of 4 s ago")
}

func TestErrorsSayHowFarTheyWereRead(t *testing.T) {
	s := watching(overview())
	s.Errors.Cut = true
	s.Errors.Groups[0].AtLeast = true
	wantWords(t, s.Frame(80, 24), "of the first 8,000 rows", "7,000+")
	s.Errors.Reading = true
	wantWords(t, s.Frame(80, 24), "being read again")
	s.Errors.Trouble = "permission denied"
	wantWords(t, s.Frame(80, 24), "not read: permission denied")
	s.Errors = topview.Errors{ReadAt: noon}
	wantWords(t, s.Frame(80, 24), "none (1 s ago)")
	s.Errors = topview.Errors{}
	wantWords(t, s.Frame(80, 24), "being read…")
}

func TestASmallScreenHasWhatMatters(t *testing.T) {
	s := watching(overview(worker("a", 1, time.Second), worker("b", 2, time.Second)))
	wantWords(t, s.Frame(40, 10), "29.8%", "9 min 29 s left", "1,234 rows/s", "failed 8,000", "STATE", "b", "7,000  exit status 1")
	s.Lost("gone", noon)
	wantWords(t, s.Frame(40, 10), "no answer since", "29.8%", "failed 8,000")
}

func TestALongNameKeepsItsEnd(t *testing.T) {
	s := watching(overview())
	s.Name = strings.Repeat("/very/long", 20) + "/jobs.db"
	f := s.Frame(60, 20)
	if title := f[0].String(); !strings.Contains(title, "…") || !strings.Contains(title, "/jobs.db ") || !strings.HasSuffix(title, "12:00:01 ") {
		t.Errorf("%q", title)
	}
}

func TestTheHelpNamesEveryKey(t *testing.T) {
	s := watching(overview())
	s.Help = true
	f := s.Frame(60, 20)
	wantHeld(t, f, 60, 20)
	wantWords(t, f, "q, Ctrl-C", "p ", "e ", "arrows", "PgUp PgDn", "any key: back")
}

// hostile are texts as a row's error may be.
var hostile = []string{
	"", "plain", "a\nb\r\tc", "\x1b[2J\x1b[31mred\x07", "nul\x00", "bad \xff\xfe utf-8", "日本語の長いエラーメッセージ", "family 👨‍👩‍👧‍👦 flag 🇩🇪 heart ❤️",
	"e\u0301" + strings.Repeat("\u0301", 300), "\u202eright to left\u202c", "\u200b\u200d\ufeff", strings.Repeat("界", 3000), strings.Repeat("x", 100_000),
	"ﷺ ꧅ ⸻ 𒐫", "\u0085\u2028\u2029next", "\U000e0001tag\U000e007f",
}

func TestNoSizeIsTooSmallAndNoTextTooWild(t *testing.T) {
	for i, text := range hostile {
		w := worker(text, 12.5, time.Second)
		w.Version, w.Program, w.Trouble = text, text, text
		o := overview(w, w, w)
		o.PausedBy = text
		s := watching(o)
		s.Errors.Groups[0].Message = text
		s.Lost(text, noon)
		s.Say(text, s.Clock)
		for width := 1; width < 140; width += 3 + i%5 {
			for height := 1; height < 50; height += 2 + i%7 {
				wantHeld(t, s.Frame(width, height), width, height)
			}
		}
	}
	if f := watching(overview()).Frame(0, 0); len(f) != 0 {
		t.Errorf("a frame of no size: %q", f)
	}
}

func TestRandomJobsKeepWithinTheScreen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &topview.State{Name: "job", Clock: noon, ASCII: rapid.Bool().Draw(t, "ascii")}
		at := noon
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			width, height := rapid.IntRange(1, 300).Draw(t, "width"), rapid.IntRange(1, 100).Draw(t, "height")
			at = at.Add(time.Duration(rapid.Int64Range(-2e9, 400e9).Draw(t, "pass")))
			s.Clock = at
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				s.Saw(drawOverview(t, at), at)
			case 1:
				s.Lost(drawText(t), at)
			case 2:
				s.Errors = drawErrors(t, at)
			default:
				s.Press(topview.Key(rapid.IntRange(0, int(topview.KeyEnd)).Draw(t, "key")), width, height)
			}
			wantHeld(t, s.Frame(width, height), width, height)
		}
	})
}

func drawText(t *rapid.T) string {
	return rapid.OneOf(rapid.String(), rapid.SampledFrom(hostile)).Draw(t, "text")
}

func drawOverview(t *rapid.T, now time.Time) checkout.Overview {
	count := rapid.OneOf(rapid.Int64Range(0, 10), rapid.Int64Range(-5, 1<<60))
	o := checkout.Overview{Counts: checkout.Counts{}, Now: now, Rate: drawRate(t), OldestDue: time.Duration(rapid.Int64().Draw(t, "due"))}
	for _, state := range []model.State{model.Fresh, model.Waiting, model.InFlight, model.Expired, model.Done, model.Failed} {
		o.Counts[state] = count.Draw(t, string(state))
		if rapid.Bool().Draw(t, "estimated") {
			o.Estimated = append(o.Estimated, state)
		}
	}
	o.TotalEstimated = rapid.Bool().Draw(t, "total estimated")
	if rapid.Bool().Draw(t, "paused") {
		o.PausedBy = drawText(t)
	}
	for range rapid.SampledFrom([]int{0, 1, 3, 60}).Draw(t, "workers") {
		w := worker(drawText(t), drawRate(t), time.Duration(rapid.Int64Range(-1e9, 1e15).Draw(t, "seen")))
		w.Trouble = rapid.SampledFrom(hostile).Draw(t, "trouble")
		w.Done, w.Conflicts, w.PID = count.Draw(t, "done"), count.Draw(t, "conflicts"), int(count.Draw(t, "pid"))
		o.Workers = append(o.Workers, w)
	}
	return o
}

func drawRate(t *rapid.T) float64 {
	return rapid.OneOf(rapid.Float64(), rapid.Float64Range(0, 5000), rapid.Just(0.0)).Draw(t, "rate")
}

func drawErrors(t *rapid.T, at time.Time) topview.Errors {
	e := topview.Errors{Rows: rapid.Int64Range(0, 50_000).Draw(t, "rows"), Cut: rapid.Bool().Draw(t, "cut"), ReadAt: at}
	for range rapid.IntRange(0, 40).Draw(t, "groups") {
		e.Groups = append(e.Groups, errorgroups.Group{Message: drawText(t), Count: rapid.Int64Range(1, 1<<50).Draw(t, "count"), AtLeast: rapid.Bool().Draw(t, "least")})
	}
	return e
}

func FuzzMessages(f *testing.F) {
	for _, text := range hostile[:8] {
		f.Add(text, 80, 24)
	}
	f.Fuzz(func(t *testing.T, text string, width, height int) {
		width, height = 1+int(uint(width)%200), 1+int(uint(height)%80)
		w := worker(text, 1, 0)
		w.Trouble = text
		s := watching(overview(w))
		s.Errors.Groups[0].Message = text
		s.Lost(text, noon)
		wantHeld(t, s.Frame(width, height), width, height)
	})
}

func BenchmarkFrame(b *testing.B) {
	var workers []model.Worker
	for i := range 200 {
		workers = append(workers, worker(fmt.Sprintf("host-%d", i), float64(i), time.Second))
	}
	s := watching(overview(workers...))
	for b.Loop() {
		s.Frame(120, 40)
	}
}
