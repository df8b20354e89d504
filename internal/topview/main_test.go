package topview_test

import (
	"os"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/clipperhouse/displaywidth"
	"go.uber.org/goleak"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/errorgroups"
	"github.com/windrow-go/windrow/internal/topview"
	"github.com/windrow-go/windrow/model"
)

func TestMain(m *testing.M) {
	// What the library goes by must not be that of the machine.
	os.Setenv("LC_ALL", "C.UTF-8")
	os.Setenv("TERM", "xterm-256color")
	os.Unsetenv("RUNEWIDTH_EASTASIAN")
	os.Unsetenv("NO_COLOR")
	goleak.VerifyTestMain(m)
}

var noon = time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)

// overview is that of a job with some of everything.
func overview(workers ...model.Worker) checkout.Overview {
	return checkout.Overview{
		Counts: checkout.Counts{model.Fresh: 700_000, model.InFlight: 800, model.Expired: 7, model.Waiting: 1193, model.Done: 290_000, model.Failed: 8000},
		Rate:   1234, Now: noon, Workers: workers,
	}
}

// worker has done something, and was seen so long ago.
func worker(host string, rate float64, seen time.Duration) model.Worker {
	return model.Worker{Holder: host, Host: host, PID: 4321, Program: "v1.2.0", Version: "v7", Slots: 8, InFlight: 80, Done: 123_456, Failed: 17,
		Rate: rate, StartedAt: noon.Add(-time.Hour), SeenAt: noon.Add(-seen), ExpectedBy: noon.Add(time.Minute - seen)}
}

// watching is the state after one look.
func watching(o checkout.Overview) *topview.State {
	s := &topview.State{Name: "alice@db.example.com:5432/jobs, schema windrow", Clock: noon.Add(time.Second)}
	s.Saw(o, noon)
	s.Errors = topview.Errors{Rows: 8000, ReadAt: noon, Groups: []errorgroups.Group{
		{Message: "exit status 1: no such customer", Count: 7000}, {Message: "HTTP 503", Count: 999},
	}, Others: errorgroups.Group{Count: 1}}
	return s
}

// wantHeld checks that a frame keeps within its size, and has nothing in it that would
// leave it.
func wantHeld(t interface {
	Helper()
	Fatalf(string, ...any)
}, f topview.Frame, width, height int) {
	t.Helper()
	if len(f) != height {
		t.Fatalf("%d lines on a screen of %d:\n%s", len(f), height, f)
	}
	for i, line := range f {
		text := line.String()
		if w := displaywidth.String(text); w > width {
			t.Fatalf("line %d has %d columns of %d: %q", i, w, width, text)
		}
		if at := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }); at >= 0 {
			t.Fatalf("line %d: %q at byte %d", i, text, at)
		}
	}
}

func wantWords(t *testing.T, f topview.Frame, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(f.String(), word) {
			t.Fatalf("%q is missing:\n%s", word, f)
		}
	}
}

func wantNone(t *testing.T, f topview.Frame, words ...string) {
	t.Helper()
	for _, word := range words {
		if strings.Contains(f.String(), word) {
			t.Fatalf("there is %q:\n%s", word, f)
		}
	}
}

// lineWith is the first line that contains the word.
func lineWith(t *testing.T, f topview.Frame, word string) (int, string) {
	t.Helper()
	for i, line := range f {
		if text := line.String(); strings.Contains(text, word) {
			return i, text
		}
	}
	t.Fatalf("no line has %q:\n%s", word, f)
	return 0, ""
}
