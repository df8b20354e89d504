// Package processgroup runs a child process as the leader of a process group of
// its own, so that it can be ended together with all that it has started.
package processgroup

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
	// KillGrace is how long a process group has between SIGTERM and SIGKILL.
	KillGrace = 2 * time.Second
	// DrainDelay is how long the pipes of a command are read after its end, if
	// a process that left its group (a daemon) keeps them open.
	DrainDelay = 500 * time.Millisecond
)

// group is a child process together with all that it starts, unless that
// leaves the group. Signals reach it only until its end: the number of a group
// that is gone may be somebody else's.
type group struct {
	mu   sync.Mutex
	pid  int
	gone chan struct{}
}

// Run runs cmd as the leader of a process group of its own, and returns
// when the leader has ended and the group is killed. If ctx ends first, the
// group gets SIGTERM and, after KillGrace, SIGKILL; cut tells of that. started is
// called once the process runs. A process that can't be started is a [*StartError].
// On Linux the leader is killed, too, when this process dies itself.
//
// The thread is kept until the end because the kernel ties a child's parent-death
// signal to the thread that forked it, not to the process.
func Run(ctx context.Context, cmd *exec.Cmd, started func()) (cut bool, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = groupAttributes()
	cmd.WaitDelay = DrainDelay
	if err := cmd.Start(); err != nil {
		return false, &StartError{err: err}
	}
	g := &group{pid: cmd.Process.Pid, gone: make(chan struct{})}
	started()
	stop := context.AfterFunc(ctx, g.terminate)
	err = g.wait(cmd)
	cut = !stop()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	return cut, err
}

// terminate asks the group to end, and then ends it.
func (g *group) terminate() {
	g.signal(syscall.SIGTERM)
	timer := time.NewTimer(KillGrace)
	defer timer.Stop()
	select {
	case <-g.gone:
	case <-timer.C:
		g.signal(syscall.SIGKILL)
	}
}

// end kills what is left of the group; no signal is sent after it.
func (g *group) end() {
	g.signal(syscall.SIGKILL)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pid = 0
	close(g.gone)
}

func (g *group) signal(signal syscall.Signal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pid != 0 {
		syscall.Kill(-g.pid, signal) // fails only if nobody is left
	}
}

// StartError marks an error of starting a process, as against one of running it.
type StartError struct{ err error }

func (e *StartError) Error() string { return e.err.Error() }

// Unwrap returns the system's error.
func (e *StartError) Unwrap() error { return e.err }
