package handler_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/windrow-go/windrow/handler"
	"github.com/windrow-go/windrow/model"
)

// lifeline is a named pipe that processes hold open: whoever reads it learns
// that they have started, by a line, and that the last of them is gone, by the
// end of the file.
type lifeline struct{ path string }

func newLifeline(t *testing.T) lifeline {
	t.Helper()
	path := t.TempDir() + "/lifeline"
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return lifeline{path: path}
}

// hold is shell that opens the pipe in this process and all its children.
func (l lifeline) hold() string { return fmt.Sprintf("exec 3>'%s'; echo started >&3; ", l.path) }

// watch calls started after the first line, and returns when all are gone.
func (l lifeline) watch(t *testing.T, started func()) {
	t.Helper()
	pipe, err := os.Open(l.path)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	if err := pipe.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(pipe)
	if _, err := reader.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	started()
	if _, err := io.Copy(io.Discard, reader); err != nil {
		t.Errorf("somebody is left: %v", err)
	}
}

type answer struct {
	result any
	err    error
}

// handle runs the command beside the test.
func handle(ctx context.Context, command *handler.Command) <-chan answer {
	answers := make(chan answer, 1)
	go func() {
		result, err := command.Handle(ctx, row("{}"))
		answers <- answer{result, err}
	}()
	return answers
}

func TestTimeoutLeavesNobodyBehind(t *testing.T) {
	for _, line := range []string{
		`sleep 1000 & sleep 1000`,
		`sh -c 'sleep 1000 & sleep 1000' | cat`,
		`trap '' TERM; sleep 1000 & sleep 1000; sleep 1000`,
		`kill -STOP $$`,
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			life := newLifeline(t)
			command := newCommand(t, handler.CommandOptions{Shell: life.hold() + "echo why >&2; " + line, Timeout: 3 * time.Second})
			answers := handle(t.Context(), command)
			life.watch(t, func() {})
			got := <-answers
			if got.err == nil || got.err.Error() != "timed out after 3s: why" || model.IsPermanent(got.err) {
				t.Errorf("got %v, %v", got.result, got.err)
			}
		})
	}
}

func TestCancelLeavesNobodyBehind(t *testing.T) {
	gone := errors.New("the claim is lost")
	life := newLifeline(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	answers := handle(ctx, newCommand(t, handler.CommandOptions{Shell: life.hold() + "sleep 1000 & sleep 1000"}))
	life.watch(t, func() { cancel(gone) })
	if got := <-answers; got.err != gone {
		t.Errorf("got %v, %v", got.result, got.err)
	}
}

func TestCommandMayTidyUpAtTheCancel(t *testing.T) {
	mark := t.TempDir() + "/mark"
	life := newLifeline(t)
	ctx, cancel := context.WithCancel(t.Context())
	line := fmt.Sprintf("trap 'echo tidy >%s; exit 0' TERM; %s sleep 1000 & wait", mark, life.hold())
	answers := handle(ctx, newCommand(t, handler.CommandOptions{Shell: line}))
	life.watch(t, cancel)
	got := <-answers
	if text, err := os.ReadFile(mark); !errors.Is(got.err, context.Canceled) || string(text) != "tidy\n" {
		t.Errorf("got %v, %v; %q, %v", got.result, got.err, text, err)
	}
}

func TestEndOfTheCommandEndsItsGroup(t *testing.T) {
	for _, status := range []string{"0", "1"} {
		life := newLifeline(t)
		line := life.hold() + "trap '' TERM HUP; sleep 1000 & echo done; exit " + status
		answers := handle(t.Context(), newCommand(t, handler.CommandOptions{Shell: line}))
		life.watch(t, func() {})
		got := <-answers
		if status == "0" && (got.result != "done" || got.err != nil) {
			t.Errorf("got %v, %v", got.result, got.err)
		}
		if status == "1" && (got.err == nil || got.err.Error() != "exit status 1") {
			t.Errorf("got %v, %v", got.result, got.err)
		}
	}
}

func TestFloodEndsTheWholeGroup(t *testing.T) {
	life := newLifeline(t)
	command := newCommand(t, handler.CommandOptions{Shell: life.hold() + "sleep 1000 & yes; sleep 1000", MaxOutput: 1000})
	answers := handle(t.Context(), command)
	life.watch(t, func() {})
	if got := <-answers; !model.IsPermanent(got.err) || !strings.Contains(got.err.Error(), "larger than 1000") {
		t.Errorf("got %v, %v", got.result, got.err)
	}
}
