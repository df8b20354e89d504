package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// pollInterval is how often the end of a process, or a server's first answer, is
// looked for. Looking, instead of a goroutine in Wait, keeps a running server
// invisible to tests that search for leaked goroutines.
const pollInterval = 5 * time.Millisecond

// process is a server started as a child of this process. It is not reaped, and
// so its pid not given to another process, before ended has said so.
type process struct {
	pid       int
	done      bool
	succeeded bool // over, with exit status 0
}

// start runs a program as a leader of its own session, so that a Ctrl-C at the
// terminal reaches this process only, which then stops the server in order.
func start(as account, folder, logFile, program string, args ...string) (*process, error) {
	log, err := os.OpenFile(logFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Dir = folder
	cmd.Env = cleanEnvironment()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: as.credential}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	pid := cmd.Process.Pid
	if err := cmd.Process.Release(); err != nil {
		return nil, err
	}
	return &process{pid: pid}, nil
}

// cleanEnvironment drops what could point the programs at somebody else's server
// or data, and asks for messages in English, since one of them is recognised.
func cleanEnvironment() []string {
	env := []string{"LC_ALL=C"}
	for _, entry := range os.Environ() {
		if strings.HasPrefix(entry, "PG") || strings.HasPrefix(entry, "LC_") || strings.HasPrefix(entry, "LANG") {
			continue
		}
		env = append(env, entry)
	}
	return env
}

// ended tells, without waiting, whether the process is over, and reaps it if so.
func (p *process) ended() bool {
	return p.reap(syscall.WNOHANG)
}

// reap waits as the options say; true once the process is over.
func (p *process) reap(options int) bool {
	if p.done {
		return true
	}
	var status syscall.WaitStatus
	pid, err := retryInterrupted(func() (int, error) { return syscall.Wait4(p.pid, &status, options, nil) })
	if err != nil || (pid == p.pid && !status.Stopped()) {
		p.done = true
		p.succeeded = err == nil && status.Exited() && status.ExitStatus() == 0
	}
	return p.done
}

// kill ends the process at once and reaps it.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	p.reap(0)
}

// freeze stops the process and waits until it stands still, or is over.
func (p *process) freeze() {
	p.signal(syscall.SIGSTOP)
	p.reap(syscall.WUNTRACED)
}

// signal does nothing when the process is over: its pid may be another's by now.
func (p *process) signal(signal syscall.Signal) {
	if !p.ended() {
		// The process is our unreaped child: the pid is right, and a zombie
		// takes signals without complaint.
		_ = syscall.Kill(p.pid, signal)
	}
}

// wait returns nil as soon as the process is over.
func (p *process) wait(ctx context.Context) error {
	return poll(ctx, p.ended)
}

// poll asks again and again, until the answer is yes or the context ends.
func poll(ctx context.Context, yes func() bool) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for !yes() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
	return nil
}

func retryInterrupted(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}

// children lists the live processes whose parent is the given one. ps, and not
// /proc, because that is there on every Unix.
func children(parent int) ([]int, error) {
	return processes(func(pid, ppid int) bool { return ppid == parent })
}

// alive lists those of the processes that are still there and no zombies.
func alive(pids []int) ([]int, error) {
	wanted := map[int]bool{}
	for _, pid := range pids {
		wanted[pid] = true
	}
	return processes(func(pid, _ int) bool { return wanted[pid] })
}

func processes(wanted func(pid, ppid int) bool) ([]int, error) {
	table, err := exec.Command("ps", "-A", "-o", "pid=,ppid=,stat=").Output()
	if err != nil {
		return nil, fmt.Errorf("list processes with ps: %w", err)
	}
	var pids []int
	for line := range strings.Lines(string(table)) {
		var pid, ppid int
		var state string
		if _, err := fmt.Sscan(line, &pid, &ppid, &state); err != nil {
			return nil, fmt.Errorf("read ps's line %q: %w", line, err)
		}
		if wanted(pid, ppid) && !strings.HasPrefix(state, "Z") {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// tailBytes is how much of a server's log an error shows.
const tailBytes = 2000

// tail returns the end of a log, for an error's text.
func tail(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	if len(content) > tailBytes {
		content = content[len(content)-tailBytes:]
	}
	return fmt.Sprintf("the end of %s:\n%s", filepath.Base(path), strings.TrimSpace(string(content)))
}
