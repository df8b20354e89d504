package handler

import (
	"context"
	"errors"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

const (
	// killGrace is how long a process group has between SIGTERM and SIGKILL.
	killGrace = 2 * time.Second
	// drainDelay is how long the pipes of a command are read after its end, if
	// a process that left its group (a daemon) keeps them open.
	drainDelay = 500 * time.Millisecond
)

// processGroup is a child process together with all that it starts, unless that
// leaves the group. Signals reach it only until its end: the number of a group
// that is gone may be somebody else's.
type processGroup struct {
	mu   sync.Mutex
	pid  int
	gone chan struct{}
}

// runGroup runs cmd as the leader of a process group of its own, and returns
// when the leader has ended and the group is killed. If ctx ends first, the
// group gets SIGTERM and, after killGrace, SIGKILL; cut tells of that. started is
// called once the process runs.
//
// The thread is kept until the end because the kernel ties a child's parent-death
// signal to the thread that forked it, not to the process.
func runGroup(ctx context.Context, cmd *exec.Cmd, started func()) (cut bool, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = groupAttributes()
	cmd.WaitDelay = drainDelay
	if err := cmd.Start(); err != nil {
		return false, &startError{err: err}
	}
	group := &processGroup{pid: cmd.Process.Pid, gone: make(chan struct{})}
	started()
	stop := context.AfterFunc(ctx, group.terminate)
	err = group.wait(cmd)
	cut = !stop()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	return cut, err
}

// terminate asks the group to end, and then ends it.
func (g *processGroup) terminate() {
	g.signal(syscall.SIGTERM)
	timer := time.NewTimer(killGrace)
	defer timer.Stop()
	select {
	case <-g.gone:
	case <-timer.C:
		g.signal(syscall.SIGKILL)
	}
}

// end kills what is left of the group; no signal is sent after it.
func (g *processGroup) end() {
	g.signal(syscall.SIGKILL)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pid = 0
	close(g.gone)
}

func (g *processGroup) signal(signal syscall.Signal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pid != 0 {
		syscall.Kill(-g.pid, signal) // fails only if nobody is left
	}
}

// startError marks an error of starting a process, as against one of running it.
type startError struct{ err error }

func (e *startError) Error() string { return e.err.Error() }
func (e *startError) Unwrap() error { return e.err }
