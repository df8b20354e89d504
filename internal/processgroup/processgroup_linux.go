package processgroup

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// groupAttributes: a group of its own, whose leader dies with windrow, even if
// that is killed: by then its work may be somebody else's.
func groupAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// wait kills the group when its leader has ended, but before the leader is
// reaped: until then the group's number can't be another's.
func (g *group) wait(cmd *exec.Cmd) error {
	for {
		err := unix.Waitid(unix.P_PID, g.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			break
		}
	}
	g.end()
	return cmd.Wait()
}
