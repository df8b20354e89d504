package topview_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gdamore/tcell/v3/vt"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/topview"
	"github.com/windrow-go/windrow/model"
)

// job is one that does as the test says; the real ones are watched in cmd/windrow.
type job struct {
	overview func(ctx context.Context) (checkout.Overview, error)
	failures func(ctx context.Context, each func(checkout.Failure) error) error
	paused   atomic.Pointer[string]
}

func (j *job) Overview(ctx context.Context, exact bool) (checkout.Overview, error) {
	if j.overview != nil {
		return j.overview(ctx)
	}
	o := overview()
	if by := j.paused.Load(); by != nil {
		o.PausedBy = *by
	}
	return o, nil
}

func (j *job) Failures(ctx context.Context, each func(checkout.Failure) error) error {
	if j.failures != nil {
		return j.failures(ctx, each)
	}
	return each(checkout.Failure{ID: 1, State: model.Failed, Error: "the only error", At: noon})
}

func (j *job) Pause(_ context.Context, by string) error { j.paused.Store(&by); return nil }
func (j *job) Resume(context.Context) error             { j.paused.Store(nil); return nil }

// view is a view that runs on an emulated terminal.
type view struct {
	t        *testing.T
	terminal vt.MockTerm
	written  *recorder
	end      context.CancelFunc
	ended    chan error
}

// recorder is a terminal that keeps what is written to it.
type recorder struct {
	vt.MockTerm
	mu   sync.Mutex
	text strings.Builder
}

func (r *recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	r.text.Write(p)
	r.mu.Unlock()
	return r.MockTerm.Write(p)
}

// watch starts a view of a job.
func watch(t *testing.T, j *job) *view {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	terminal := vt.NewMockTerm(vt.MockOptSize{X: 80, Y: 24})
	v := &view{t: t, terminal: terminal, written: &recorder{MockTerm: terminal}, end: cancel, ended: make(chan error, 1)}
	go func() {
		defer func() {
			if p := recover(); p != nil {
				v.ended <- fmt.Errorf("panic: %v", p)
			}
		}()
		v.ended <- topview.Run(ctx, topview.Options{Job: j, Name: "the job", By: "me@here", Explain: error.Error, Terminal: v.written})
	}()
	t.Cleanup(cancel)
	return v
}

func (v *view) screen() string {
	var b strings.Builder
	size, _ := v.terminal.WindowSize()
	for y := range size.Height {
		for x := 0; x < size.Width; x++ {
			cell := v.terminal.GetCell(vt.Coord{X: vt.Col(x), Y: vt.Row(y)})
			b.WriteString(cmp.Or(cell.C, " "))
			x += max(cell.W-1, 0) // the second half of a wide one
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// sees waits until each of the words has stood on the screen.
func (v *view) sees(words ...string) {
	v.t.Helper()
	for _, word := range words {
		v.waits(word, true)
	}
}

// seesNoMore waits until a word does not stand on the screen.
func (v *view) seesNoMore(word string) {
	v.t.Helper()
	v.waits(word, false)
}

func (v *view) waits(word string, there bool) {
	v.t.Helper()
	deadline := time.After(20 * time.Second)
	for strings.Contains(v.screen(), word) != there {
		select {
		case err := <-v.ended:
			v.t.Fatalf("ended with %v; %q on the screen: not yet %v", err, word, there)
		case <-deadline:
			v.t.Fatalf("%q on the screen: still not %v:\n%s", word, there, v.screen())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (v *view) types(keys string) { v.terminal.SendRaw([]byte(keys)) }

// ends waits for the end, wants the terminal back, and returns Run's error.
func (v *view) ends() error {
	v.t.Helper()
	select {
	case err := <-v.ended:
		v.written.mu.Lock()
		defer v.written.mu.Unlock()
		text := v.written.text.String()
		leave := strings.LastIndex(text, "\x1b[?1049l")
		if leave < strings.LastIndex(text, "\x1b[?1049h") || strings.LastIndex(text, "\x1b[?25h") < strings.LastIndex(text, "\x1b[?25l") {
			v.t.Errorf("the terminal is left in the view's state: …%q", text[max(0, len(text)-200):])
		}
		return err
	case <-time.After(20 * time.Second):
		v.t.Fatal("the view does not end")
		return nil
	}
}

func (v *view) endsWell() {
	v.t.Helper()
	if err := v.ends(); err != nil {
		v.t.Fatal(err)
	}
}

func TestTheViewIsSeenAndQuit(t *testing.T) {
	v := watch(t, &job{})
	v.sees("the job", "298,000 of 1,000,000", "the only error")
	v.types("?")
	v.sees("any key: back")
	v.types("x")
	v.sees("298,000")
	v.types("q")
	v.endsWell()
}

func TestCtrlCAndTheEndOfTheContextQuit(t *testing.T) {
	v := watch(t, &job{})
	v.sees("298,000")
	v.types("\x03")
	v.endsWell()
	v = watch(t, &job{})
	v.sees("298,000")
	v.end()
	v.endsWell()
}

func TestThePauseIsDoneInTheUsersName(t *testing.T) {
	j := &job{}
	v := watch(t, j)
	v.sees("298,000")
	v.types("p")
	v.sees("[y/N]")
	if j.paused.Load() != nil {
		t.Error("paused before it was confirmed")
	}
	v.types("y")
	v.sees("PAUSED by me@here")
	v.types("py")
	v.sees("resumed")
	v.types("q")
	v.endsWell()
}

func TestAnotherSizeIsDrawnAnew(t *testing.T) {
	v := watch(t, &job{})
	v.sees("298,000 of 1,000,000")
	v.terminal.SetSize(vt.Coord{X: 40, Y: 10})
	v.sees("windrow top", "q quit")
	v.seesNoMore("298,000 of 1,000,000")
	v.types("q")
	v.endsWell()
}

// A database that hangs must neither stop the screen nor keep it from ending.
func TestADatabaseThatHangsDoesNotHoldTheScreenUp(t *testing.T) {
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	var calls atomic.Int64
	v := watch(t, &job{
		overview: func(ctx context.Context) (checkout.Overview, error) {
			if calls.Add(1) > 1 {
				return checkout.Overview{}, hang(ctx)
			}
			return overview(), nil
		},
		failures: func(ctx context.Context, _ func(checkout.Failure) error) error { return hang(ctx) },
	})
	v.sees("298,000", "being read", "as of")
	v.types("?")
	v.sees("any key")
	v.types("x")
	v.sees("no answer within 5s")
	began := time.Now()
	v.types("q")
	v.endsWell()
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the end took %v", took)
	}
}

func TestALostDatabaseIsFoundAgain(t *testing.T) {
	var down atomic.Bool
	v := watch(t, &job{overview: func(context.Context) (checkout.Overview, error) {
		if down.Load() {
			return checkout.Overview{}, errors.New("connection refused")
		}
		return overview(), nil
	}})
	v.sees("298,000")
	down.Store(true)
	v.sees("no answer since", "connection refused", "298,000")
	down.Store(false)
	v.seesNoMore("no answer")
	v.types("q")
	v.endsWell()
}

// Of many errors the first are read, and the database is not made to send the rest.
func TestOfManyErrorsTheFirstAreRead(t *testing.T) {
	cut := make(chan bool, 1)
	v := watch(t, &job{failures: func(ctx context.Context, each func(checkout.Failure) error) error {
		for id := int64(1); ; id++ {
			if err := each(checkout.Failure{ID: id, State: model.Failed, Error: fmt.Sprintf("row %d is bad", id), At: noon}); err != nil {
				cut <- ctx.Err() != nil
				return err
			}
		}
	}})
	v.sees("of the first 20,000 rows", "20,000  row <n> is bad")
	if !<-cut {
		t.Error("the query is not cancelled")
	}
	v.types("e")
	<-cut // read again
	v.types("q")
	v.endsWell()
}

func TestAPanicGivesTheTerminalBack(t *testing.T) {
	v := watch(t, &job{overview: func(context.Context) (checkout.Overview, error) { panic("a mistake") }})
	if err := v.ends(); err == nil || !strings.Contains(err.Error(), "a mistake") || !strings.Contains(err.Error(), "run_test.go") {
		t.Errorf("%v, want the panic and where it began", err)
	}
}

func TestWithoutColoursNothingIsColoured(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	v := watch(t, &job{})
	v.sees("298,000", "the only error")
	for y := range vt.Row(24) {
		cell := v.terminal.GetCell(vt.Coord{X: 1, Y: y})
		if cell.C == "█" && cell.S.Attr()&vt.Reverse != 0 {
			t.Error("the bar is drawn in reverse, so that what is done looks empty")
		}
	}
	v.types("q")
	v.endsWell()
	text := v.written.text.String()
	for _, part := range strings.Split(text, "\x1b[")[1:] {
		if end := strings.IndexFunc(part, func(r rune) bool { return r >= '@' }); end >= 0 && part[end] == 'm' {
			for _, code := range strings.Split(part[:end], ";") {
				if len(code) == 2 && (code[0] == '3' || code[0] == '4') && code[1] != '9' {
					t.Fatalf("a colour: %q", part[:end+1])
				}
			}
		}
	}
	if os.Getenv("NO_COLOR") == "" || !strings.Contains(text, "\x1b[") {
		t.Error("the test proves nothing")
	}
}
