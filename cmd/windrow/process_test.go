package main_test

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long anything may take before the test gives up on it.
const patience = time.Minute

// process is one run of the program, in a process group of its own. When the test
// ends it is gone, and must not have said anything that no run may say.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout output
	stderr output
	ended  chan struct{}
}

// output is what a process has written so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start starts the program in a place, with nothing on its stdin.
func (p *place) start(args ...string) *process { return p.feed("", args...) }

// feed starts the program with input on its stdin.
func (p *place) feed(input string, args ...string) *process {
	p.t.Helper()
	run := &process{t: p.t, cmd: exec.Command(p.program, args...), ended: make(chan struct{})}
	run.cmd.Dir = p.dir
	run.cmd.Env = p.environment()
	run.cmd.Stdin = strings.NewReader(input)
	run.cmd.Stdout, run.cmd.Stderr = &run.stdout, &run.stderr
	run.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	run.cmd.WaitDelay = 10 * time.Second // a child that outlives it must not hold the test up
	if err := run.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		_ = run.cmd.Wait() // the code tells
		close(run.ended)
	}()
	p.t.Cleanup(run.cleanUp)
	return run
}

func (run *process) cleanUp() {
	run.kill()
	text := run.stdout.String() + run.stderr.String()
	for _, forbidden := range []string{"database is locked", "SQLITE_BUSY", "DATA RACE", "panic:", "goroutine 1 ["} {
		if strings.Contains(text, forbidden) {
			run.t.Errorf("windrow %q said %q:\n%s", run.cmd.Args[1:], forbidden, clip(text))
		}
	}
}

// kill ends the process by SIGKILL, and returns when it is gone.
func (run *process) kill() {
	run.signal(syscall.SIGKILL)
	<-run.ended
}

// signal sends a signal to the process and its group. One that is over gets none.
func (run *process) signal(s syscall.Signal) {
	run.t.Helper()
	if run.over() {
		return
	}
	if err := syscall.Kill(-run.cmd.Process.Pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		run.t.Errorf("signal %v: %v", s, err)
	}
}

func (run *process) over() bool {
	select {
	case <-run.ended:
		return true
	default:
		return false
	}
}

// outcome is how a process ended.
type outcome struct {
	t              *testing.T
	args           []string
	code           int
	stdout, stderr string
	took           time.Duration
}

// end waits for the process to end by itself.
func (run *process) end() outcome {
	run.t.Helper()
	began := time.Now()
	select {
	case <-run.ended:
	case <-time.After(patience):
		run.signal(syscall.SIGABRT)
		run.t.Fatalf("windrow %q did not end within %v:\n%s", run.cmd.Args[1:], patience, clip(run.stderr.String()))
	}
	return outcome{
		t: run.t, args: run.cmd.Args[1:], code: run.cmd.ProcessState.ExitCode(),
		stdout: run.stdout.String(), stderr: run.stderr.String(), took: time.Since(began),
	}
}

// run runs the program to its end.
func (p *place) run(args ...string) outcome {
	p.t.Helper()
	return p.start(args...).end()
}

// ok runs the program and wants exit code 0.
func (p *place) ok(args ...string) outcome {
	p.t.Helper()
	return p.run(args...).wants(0)
}

// wants checks the exit code, and that these words stand in what was said on
// stderr.
func (o outcome) wants(code int, words ...string) outcome {
	o.t.Helper()
	if o.code != code {
		o.t.Fatalf("windrow %q: exit code %d, want %d\nstderr: %s", o.args, o.code, code, clip(o.stderr))
	}
	for _, w := range words {
		if !strings.Contains(o.stderr, w) {
			o.t.Fatalf("windrow %q: %q is missing in stderr: %s", o.args, w, clip(o.stderr))
		}
	}
	return o
}

// lacks checks that none of these words stands in what was said.
func (o outcome) lacks(words ...string) outcome {
	o.t.Helper()
	for _, w := range words {
		if strings.Contains(o.stdout+o.stderr, w) {
			o.t.Fatalf("windrow %q said %q: %s", o.args, w, clip(o.stdout+o.stderr))
		}
	}
	return o
}

// prints checks that these words stand in what was written to stdout.
func (o outcome) prints(words ...string) outcome {
	o.t.Helper()
	for _, w := range words {
		if !strings.Contains(o.stdout, w) {
			o.t.Fatalf("windrow %q: %q is missing in stdout: %s", o.args, w, clip(o.stdout))
		}
	}
	return o
}

// clip keeps a failure's text readable.
func clip(text string) string {
	const most = 4000
	if len(text) <= most {
		return text
	}
	return text[:most/2] + "\n…\n" + text[len(text)-most/2:]
}

// eventually waits for what another process does; there is nothing to wait on.
func eventually(t *testing.T, what string, yes func() bool) {
	t.Helper()
	within(t, patience, what, yes)
}

func within(t *testing.T, limit time.Duration, what string, yes func() bool) {
	t.Helper()
	deadline := time.After(limit)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !yes() {
		select {
		case <-deadline:
			t.Fatalf("not within %v: %s", limit, what)
		case <-tick.C:
		}
	}
}

func contains(text, word string) bool { return strings.Contains(text, word) }
