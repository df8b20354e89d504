package handler_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/windrow-go/windrow/handler"
)

func TestCommandDiesWithItsWorker(t *testing.T) {
	life := newLifeline(t)
	worker := exec.Command(os.Args[0])
	worker.Env = append(os.Environ(), workerVariable+"="+life.hold()+"exec sleep 1000")
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	life.watch(t, func() { worker.Process.Kill() })
	worker.Wait()
}

func TestDaemonThatKeepsTheOutputOpenHoldsUpNobody(t *testing.T) {
	path := t.TempDir() + "/pid"
	line := fmt.Sprintf(`setsid sh -c 'echo $$ >%s; exec sleep 1000' & while ! test -s %[1]s; do :; done; echo done`, path)
	got, err := newCommand(t, handler.CommandOptions{Shell: line}).Handle(t.Context(), row("{}"))
	if got != "done" || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the daemon: %v", err)
	}
}
