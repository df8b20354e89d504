package pgcluster

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// keepFile, in a folder, makes the guard and Stop leave the folder there.
const keepFile = "keep"

// guardScript waits for a line on its stdin. The end of the file without one
// means that the owner is dead: then the server named by the pid file gets the
// signal to end at once, ten seconds later SIGKILL, and the folder is removed.
// Two looks for the pid file: the owner may have died just after the start.
const guardScript = `
trap '' HUP INT TERM
if read -r released; then exit 0; fi
for look in 1 2; do
	pid=
	if read -r pid < "$2"; then
		kill -QUIT "$pid"
		for tenth in $(seq 100); do kill -0 "$pid" || break; sleep 0.1; done
		kill -KILL "$pid"
		break
	fi
	sleep 1
done
[ -e "$1/` + keepFile + `" ] || rm -rf "$1"
`

// guard ends a server whose owner, this process, has died. A pipe tells it: the
// kernel closes our end however we end, and no pid has to be watched for that.
type guard struct {
	release io.WriteCloser
	shell   *exec.Cmd
}

// newGuard guards a folder and the server whose pid stands in the file's first
// line; the server need not run yet.
func newGuard(folder, pidFile string) (*guard, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	shell := exec.Command("/bin/sh", "-c", guardScript, "sh", folder, pidFile)
	shell.Dir = "/"
	shell.Stdin = read
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := shell.Start(); err != nil {
		return nil, errors.Join(err, write.Close())
	}
	return &guard{release: write, shell: shell}, nil
}

// dismiss tells the guard that there is nothing left to guard.
func (g *guard) dismiss() error {
	_, err := io.WriteString(g.release, "released\n")
	return errors.Join(err, g.release.Close(), g.shell.Wait())
}

// removeFolder removes a server's folder unless it is to be kept.
func removeFolder(folder string) error {
	if _, err := os.Stat(filepath.Join(folder, keepFile)); err == nil {
		return nil
	}
	return os.RemoveAll(folder)
}
