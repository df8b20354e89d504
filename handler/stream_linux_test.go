package handler_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windrow-go/windrow/handler"
	"github.com/windrow-go/windrow/model"
)

func TestRowThatNoChildReadIsNotCharged(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{`echo no module >&2; exit 1`, "the child ended: exit status 1: no module (before it read the row)"},
		{`echo loading >&2; exec sleep 1000`, "timed out after 2s: loading (before it read the row)"},
	} {
		t.Run(tt.line, func(t *testing.T) {
			t.Parallel()
			stream := newStream(t, handler.StreamOptions{Shell: tt.line, Timeout: 2 * time.Second})
			_, err := stream.Handle(t.Context(), row("1"))
			if !model.IsUnavailable(err) || err.Error() != tt.want {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestChildThatEndsBetweenRowsIsReplaced(t *testing.T) {
	for _, shared := range []bool{false, true} {
		logger, logs := observed()
		stream := newStream(t, handler.StreamOptions{Shared: shared, Logger: logger, Shell: `read -r l; ` + `id=${l#*:}; id=${id%%,*}; ` + count})
		for id := range int64(50) {
			if got := mustHandle(t, stream, numbered(id, "1")); !strings.HasPrefix(got, "[1,") {
				t.Errorf("got %s", got)
			}
		}
		stream.Close()
		if logs.FilterMessageSnippet("child ended").Len() == 0 {
			t.Error("the ends are not logged")
		}
	}
}

func TestChildThatStopsReadingIsReplaced(t *testing.T) {
	t.Parallel()
	stream := newStream(t, handler.StreamOptions{Shell: `IFS= read -r line; id=7; exec 3<&0 0<&- 3<&-; ` + count + `; exec sleep 1000`})
	for range 2 {
		if got := mustHandle(t, stream, row("1")); !strings.HasPrefix(got, "[1,") {
			t.Errorf("got %s", got)
		}
	}
}

// Requests that are not read would fill the memory if they could be answered.
func TestAnswerToARequestThatWasNotSentIsNone(t *testing.T) {
	t.Parallel()
	stream := newStream(t, handler.StreamOptions{
		Timeout: time.Second,
		Shell:   `while printf '{"id":1,"result":1}\n{"id":2,"result":2}\n'; do sleep 0.01; done`,
	})
	large := `"` + strings.Repeat("x", 1<<20) + `"`
	mustHandle(t, stream, numbered(1, large))
	_, err := stream.Handle(t.Context(), numbered(2, large))
	if !model.IsUnavailable(err) || err.Error() != "timed out after 1s (before it read the row)" {
		t.Errorf("got %v", err)
	}
}

func TestDaemonThatKeepsTheStreamOpenHoldsUpNobody(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/pid"
	stream := newStream(t, handler.StreamOptions{
		Shell: `read -r l; setsid sh -c 'echo $$ >` + path + `; exec sleep 1000' & while ! test -s ` + path + `; do :; done; exit 3`,
	})
	begun := time.Now()
	_, err := stream.Handle(t.Context(), row("1"))
	if !isCharged(err) || err.Error() != "the child ended: exit status 3" || time.Since(begun) > 10*time.Second {
		t.Errorf("got %v after %s", err, time.Since(begun))
	}
	kill := exec.Command("sh", "-c", "kill -KILL $(cat "+path+")")
	if err := kill.Run(); err != nil {
		t.Errorf("the daemon: %v", err)
	}
}

// streamVariable makes TestStreamWorker a worker whose child the variable holds.
const streamVariable = "HANDLER_TEST_STREAM"

func TestStreamWorker(t *testing.T) {
	line, ok := os.LookupEnv(streamVariable)
	if !ok {
		t.Skip("it is what TestChildrenDieWithTheirWorker kills")
	}
	newStream(t, handler.StreamOptions{Shell: line}).Handle(t.Context(), row("1"))
}

func TestChildrenDieWithTheirWorker(t *testing.T) {
	life := newLifeline(t)
	worker := exec.Command(os.Args[0], "-test.run=^TestStreamWorker$")
	worker.Env = append(os.Environ(), streamVariable+"=read -r line; "+life.hold()+"exec sleep 1000")
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	life.watch(t, func() { worker.Process.Kill() })
	worker.Wait()
}

func TestClosedStreamLeavesNothing(t *testing.T) {
	files, processes := openFiles(t), childProcesses(t)
	for _, shared := range []bool{false, true} {
		stream := newStream(t, handler.StreamOptions{
			Shared: shared, Timeout: soakTimeout, MaxOutput: 100_000,
			Args: []string{python(t), "-c", misbehave, t.TempDir() + "/tried"},
		})
		var rows sync.WaitGroup
		for i, kind := range slices.Collect(maps.Keys(reasons)) {
			rows.Go(func() { endRow(t, stream, int64(i), kind) })
		}
		rows.Wait()
		stream.Close()
	}
	if after := openFiles(t); after != files {
		t.Errorf("%d files were open before, %d are after", files, after)
	}
	if after := childProcesses(t); after != processes {
		t.Errorf("there were %d processes before, and %d after", processes, after)
	}
}

// childProcesses is how many children this process has, zombies too.
func childProcesses(t *testing.T) (n int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, _ := os.ReadFile(file) // an error: it has gone meanwhile
		_, fields, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(fields); len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) {
			n++
		}
	}
	return n
}
