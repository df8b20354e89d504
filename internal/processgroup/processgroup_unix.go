//go:build unix && !linux

package processgroup

import (
	"os/exec"
	"syscall"
)

// groupAttributes: a group of its own. There is no parent-death signal here, so
// a command can outlive a windrow that is killed by SIGKILL.
func groupAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// wait kills the group when its leader has ended and its pipes are closed.
func (g *group) wait(cmd *exec.Cmd) error {
	err := cmd.Wait()
	g.end()
	return err
}
