package handler_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windrow-go/windrow/handler"
	"github.com/windrow-go/windrow/model"
)

// isCharged tells whether err is an ordinary error of its row.
func isCharged(err error) bool {
	return err != nil && !model.IsUnavailable(err) && !model.IsPermanent(err)
}

func TestEndInMidRowIsAnErrorOfTheRow(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{`read -r l; echo ' boom ' >&2; exit 3`, "the child ended: exit status 3: boom"},
		{`read -r l; exit 65`, "the child ended: exit status 65"},
		{`read -r l; echo only noise`, "the child ended: exit status 0"},
		{`read -r l; kill -KILL $$`, "the child ended: killed by SIGKILL (killed)"},
		{`read -r l; printf '{"id":7,"res'`, `the child ended: exit status 0, in the middle of a line that begins "{\"id\":7,\"res"`},
		{`read -r l; exec >&-; echo why >&2; sleep 1000`, "the child closed its standard output: why"},
		{`read -r l; exec >&-; trap '' TERM; while :; do sleep 1; done`, "the child closed its standard output"},
		{`read -r l; sleep 1000 & exec sh -c 'exit 4'`, "the child ended: exit status 4"},
	} {
		t.Run(tt.line, func(t *testing.T) {
			t.Parallel()
			stream := newStream(t, handler.StreamOptions{Shell: tt.line})
			got, err := stream.Handle(t.Context(), row("1"))
			if !isCharged(err) || err.Error() != tt.want {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestLastLineNeedsNoNewline(t *testing.T) {
	stream := newStream(t, handler.StreamOptions{Shell: `read -r l; printf '{"id":7,"result":1}'`})
	if got := mustHandle(t, stream, row("1")); got != "1" {
		t.Errorf("got %s", got)
	}
}

func TestStreamTimeoutLeavesNobodyBehind(t *testing.T) {
	for _, line := range []string{
		`sleep 1000 & sleep 1000`,
		`trap '' TERM; sleep 1000 & sleep 1000; sleep 1000`,
		`kill -STOP $$`,
		`yes`,
		`yes | tr -d '\n'`,
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			life := newLifeline(t)
			stream := newStream(t, handler.StreamOptions{Timeout: 2 * time.Second, Shell: "read -r l; " + life.hold() + "echo why >&2; " + line})
			answers := send(t.Context(), stream, row("1"))
			life.watch(t, func() {})
			got := <-answers
			if !isCharged(got.err) || !strings.HasPrefix(got.err.Error(), "timed out after 2s") || !strings.HasSuffix(got.err.Error(), ": why") {
				t.Errorf("got %v, %v", got.result, got.err)
			}
		})
	}
}

func TestTimeoutOfTheCallerCountsToo(t *testing.T) {
	t.Parallel()
	limit := errors.New("the row has used up its time")
	stream := newStream(t, handler.StreamOptions{Shell: `read -r l; echo why >&2; sleep 1000`})
	ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Second, limit)
	defer cancel()
	_, err := stream.Handle(ctx, row("1"))
	if !errors.Is(err, limit) || !isCharged(err) || err.Error() != "the row has used up its time: why" {
		t.Errorf("got %v", err)
	}
}

func TestChildIsReplacedAfterATimeout(t *testing.T) {
	t.Parallel()
	stream := newStream(t, handler.StreamOptions{
		Timeout: 2 * time.Second,
		Shell:   each(`case $line in *sleep*) echo why >&2; sleep 1000;; *) echo earlier >&2; sleep 0.2; ` + count + `;; esac`),
	})
	first := mustHandle(t, stream, row("1"))
	if _, err := stream.Handle(t.Context(), row(`"sleep"`)); err == nil || err.Error() != "timed out after 2s: why" {
		t.Errorf("got %v", err)
	}
	if second := mustHandle(t, stream, row("1")); !strings.HasPrefix(second, "[1,") || second == first {
		t.Errorf("first %s, then %s", first, second)
	}
}

func TestStandardErrorIsReadAlways(t *testing.T) {
	stream := newStream(t, handler.StreamOptions{Shell: each(`head -c 20000000 /dev/zero >&2; echo the end >&2; case $line in *die*) exit 3;; esac; ` + count)})
	mustHandle(t, stream, row("1"))
	mustHandle(t, stream, row("1"))
	_, err := stream.Handle(t.Context(), row(`"die"`))
	if err == nil || !strings.HasSuffix(err.Error(), "the end") || len(err.Error()) > 2200 {
		t.Errorf("got %v", err)
	}
}

func TestWritingBeforeReadingBlocksNobody(t *testing.T) {
	large := `"` + strings.Repeat("x", 10<<20) + `"`
	for _, line := range []string{
		`yes noise | head -c 1000002; head -n 1 >/dev/null; ` + say(`"result":1`),
		say(`"result":1`) + `; yes noise | head -c 1000002; exec sleep 1000`, // answers what it has begun to be sent
	} {
		stream := newStream(t, handler.StreamOptions{Shell: "id=7; " + line})
		if got := mustHandle(t, stream, row(large)); got != "1" {
			t.Errorf("%s: got %s", line, got)
		}
	}
}

func TestLargeRowsAndResults(t *testing.T) {
	large := `"` + strings.Repeat("x", 1<<20) + `"`
	for _, shared := range []bool{false, true} {
		stream := newStream(t, handler.StreamOptions{Shared: shared, Args: []string{python(t), "-c", `
import sys
for line in sys.stdin:
    head, data = line.split(',"data":')
    print(head.split(",")[0] + ',"result":' + data, end="", flush=True)
`}})
		var all []<-chan answer
		for id := range int64(4) {
			all = append(all, send(t.Context(), stream, numbered(id, large)))
		}
		for _, answers := range all {
			got := <-answers
			if result, _ := got.result.(json.RawMessage); string(result) != large {
				t.Errorf("got %d bytes, %v", len(result), got.err)
			}
		}
	}
}

func TestLongLinesTakeLittleMemory(t *testing.T) {
	hundred := `head -c 100000000 /dev/zero | tr '\0' x; `
	for _, tt := range []struct{ line, want string }{
		{`read -r l; printf '{"id":7,"result":"'; ` + hundred + `echo '"}'; sleep 1000`, "the child's answer is larger than 1000000 bytes"},
		{`read -r l; printf '{"result":"'; ` + hundred + `echo '","id":7}'; sleep 1000`, "the child's answer is larger than 1000000 bytes"},
		{`read -r l; printf '{"id":7,"result":"'; yes | tr -d '\n'`, "the child's answer is larger than 1000000 bytes"},
		{`read -r l; ` + hundred + `echo; echo '{"id":7,"result":1}'; sleep 1000`, ""},
	} {
		stream := newStream(t, handler.StreamOptions{Shell: tt.line, MaxOutput: 1_000_000})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := stream.Handle(t.Context(), row("1"))
		runtime.ReadMemStats(&after)
		if tt.want == "" && err != nil || tt.want != "" && (!model.IsPermanent(err) || err.Error() != tt.want) {
			t.Errorf("%s: got %v, %v", tt.line, got, err)
		}
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 10<<20 {
			t.Errorf("%s: %d bytes were allocated", tt.line, allocated)
		}
	}
}

func TestLimitHoldsForShortAnswers(t *testing.T) {
	stream := newStream(t, handler.StreamOptions{MaxOutput: 30, Shell: each(`case $line in *long*) ` + say(`"result":"123456789 123456789"`) + `;; *) ` + say(`"result":1`) + `;; esac`)})
	if _, err := stream.Handle(t.Context(), row(`"long"`)); !model.IsPermanent(err) {
		t.Errorf("got %v", err)
	}
	mustHandle(t, stream, row("1"))
}

func TestRowThatKillsItsChildIsChargedAlone(t *testing.T) {
	stream := newStream(t, handler.StreamOptions{Shell: each(`case $line in *die*) kill -KILL $$;; esac; ` + count)})
	mustHandle(t, stream, row("1"))
	var slots sync.WaitGroup
	slots.Go(func() {
		for id := range int64(200) {
			if _, err := stream.Handle(t.Context(), numbered(id, "1")); err != nil {
				t.Errorf("an innocent row: %v", err)
			}
		}
	})
	slots.Go(func() {
		for id := range int64(20) {
			if _, err := stream.Handle(t.Context(), numbered(1000+id, `"die"`)); !isCharged(err) {
				t.Errorf("row %d, which kills its child: %v", id, err)
			}
			if _, err := stream.Handle(t.Context(), numbered(2000+id, "1")); err != nil {
				t.Errorf("the row after it: %v", err)
			}
		}
	})
	slots.Wait()
}

func TestChildThatCanNotBeStartedIsNoFaultOfTheRow(t *testing.T) {
	script := writeFile(t, t.TempDir()+"/script", "exit", 0o700)
	stream := newStream(t, handler.StreamOptions{Args: []string{script}})
	_, err := stream.Handle(t.Context(), row("1"))
	if !model.IsUnavailable(err) || !strings.Contains(err.Error(), "#!/bin/sh?") {
		t.Errorf("no #!: got %v", err)
	}
	if err := os.Remove(script); err != nil {
		t.Fatal(err)
	}
	_, err = stream.Handle(t.Context(), row("1"))
	if !model.IsUnavailable(err) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: got %v", err)
	}
}

func TestChildrenThatDieAtOnceAreStartedSeldom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	logger, logs := observed()
	stream := newStream(t, handler.StreamOptions{
		Logger: logger,
		Shell:  "echo start >>" + dir + "/starts; if ! test -e " + dir + "/ok; then echo no module >&2; exit 1; fi; " + each(count),
	})
	var slots sync.WaitGroup
	stop := time.Now().Add(1500 * time.Millisecond)
	for range 2 {
		slots.Go(func() {
			for time.Now().Before(stop) {
				if _, err := stream.Handle(t.Context(), row("1")); err == nil || !strings.Contains(err.Error(), "the child ended: exit status 1: no module") {
					t.Errorf("got %v", err)
					return
				}
				time.Sleep(time.Millisecond) // not to fill the machine
			}
		})
	}
	slots.Wait()
	starts, err := os.ReadFile(dir + "/starts")
	if n := strings.Count(string(starts), "\n"); err != nil || n < 2 || n > 12 {
		t.Errorf("%d starts, %v", n, err)
	}
	if logs.Len() == 0 {
		t.Error("the deaths are not logged")
	}
	// As soon as it can be started, it is, and then as often as needed.
	writeFile(t, dir+"/ok", "", 0o600)
	if _, charged := tries(t, stream, row("1"), 1); len(charged) > 0 {
		t.Error(charged)
	}
	first := send(t.Context(), stream, numbered(1, "1"))
	second := send(t.Context(), stream, numbered(2, "1"))
	for _, answers := range []<-chan answer{first, second} {
		if got := <-answers; got.err != nil {
			t.Error(got.err)
		}
	}
}
