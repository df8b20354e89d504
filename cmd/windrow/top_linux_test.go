package main_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gdamore/tcell/v3/vt"
	"golang.org/x/sys/unix"

	"github.com/windrow-go/windrow/internal/pgcluster"
	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
)

// terminal is a pseudo-terminal with the program in it, and what stands on its screen.
type terminal struct {
	*process
	master, slave *os.File
	emulator      vt.MockTerm
	before        unix.Termios
}

// startInTerminal starts the program as a shell would, with a terminal of 100 columns
// and 24 lines. What it writes there is the process's stdout.
func (p *place) startInTerminal(args ...string) *terminal {
	p.t.Helper()
	term := &terminal{emulator: vt.NewMockTerm(vt.MockOptSize{X: 100, Y: 24})}
	term.process = &process{t: p.t, cmd: exec.Command(p.program, args...), ended: make(chan struct{})}
	term.open()
	cmd := term.cmd
	cmd.Dir = p.dir
	cmd.Env = append(p.environment(), "TERM=xterm-256color", "LC_ALL=C.UTF-8")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = term.slave, term.slave, term.slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := term.emulator.Start(); err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.MultiWriter(&term.stdout, term.emulator), term.master) // until it is closed
		close(read)
	}()
	go func() {
		_ = cmd.Wait() // the code tells
		close(term.ended)
	}()
	p.t.Cleanup(func() {
		term.cleanUp()
		term.slave.Close()
		term.master.Close()
		<-read
		_ = term.emulator.Stop() // fails never
	})
	return term
}

// open makes the two ends of a pseudo-terminal.
func (term *terminal) open() {
	term.t.Helper()
	check := func(err error) {
		term.t.Helper()
		if err != nil {
			term.t.Fatal(err)
		}
	}
	var err error
	term.master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	check(err)
	connection, err := term.master.SyscallConn() // Fd would make reads uninterruptible
	check(err)
	var number int
	check(connection.Control(func(fd uintptr) {
		check(unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0))
		number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		check(err)
		check(unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: 100, Row: 24}))
	}))
	term.slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	check(err)
	term.before = term.settings()
}

func (term *terminal) settings() unix.Termios {
	term.t.Helper()
	settings, err := unix.IoctlGetTermios(int(term.slave.Fd()), unix.TCGETS)
	if err != nil {
		term.t.Fatal(err)
	}
	return *settings
}

func (term *terminal) types(keys string) {
	term.t.Helper()
	if _, err := term.master.WriteString(keys); err != nil {
		term.t.Fatal(err)
	}
}

func (term *terminal) screen() string {
	var b strings.Builder
	for y := range vt.Row(24) {
		for x := vt.Col(0); x < 100; x++ {
			cell := term.emulator.GetCell(vt.Coord{X: x, Y: y})
			b.WriteString(cmp.Or(cell.C, " "))
			x += vt.Col(max(cell.W-1, 0)) // the second half of a wide one
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// sees waits until the words stand on the screen together.
func (term *terminal) sees(words ...string) {
	term.t.Helper()
	deadline := time.After(patience)
	for {
		screen, missing := term.screen(), ""
		for _, word := range words {
			if !strings.Contains(screen, word) {
				missing = word
			}
		}
		if missing == "" {
			return
		}
		select {
		case <-deadline:
			term.t.Fatalf("%q is not on the screen:\n%s", missing, screen)
		case <-term.ended:
			term.t.Fatalf("windrow %q ended before %q was seen: %s", term.cmd.Args[1:], missing, clip(term.stdout.String()))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// leaves wants the program to end with code 0, and the terminal to be as it was.
func (term *terminal) leaves() {
	term.t.Helper()
	term.end().wants(0)
	if after := term.settings(); after != term.before {
		term.t.Errorf("the terminal's settings were\n%+v and are\n%+v", term.before, after)
	}
	eventually(term.t, "the view is gone from the screen", func() bool {
		text := term.stdout.String()
		return strings.LastIndex(text, "\x1b[?1049l") > strings.LastIndex(text, "\x1b[?1049h") &&
			strings.LastIndex(text, "\x1b[?25h") > strings.LastIndex(text, "\x1b[?25l")
	})
}

func TestTopShowsTheFleetAndPausesIt(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		p.load(2000)
		worker := p.start("work", "-j", "2", "--exec", `sleep 0.02; case $WINDROW_ROW_ID in *0) echo "no such customer" >&2; exit 7;; esac`, "--max-attempts", "1")
		top := p.startInTerminal("top")
		top.sees("windrow top", " of 2,000", "WORKERS  1 live", "▓", "q quit")
		top.types("e")
		top.sees("exit status 7: no such customer")

		top.types("p")
		top.sees("[y/N]")
		top.types("y")
		top.sees("PAUSED by")
		var status statusLine
		if err := json.Unmarshal([]byte(p.ok("status", "--json").stdout), &status); err != nil {
			t.Fatal(err)
		}
		if status.PausedBy == "" || status.Done == 0 {
			t.Errorf("status %+v, want done rows and a pause", status)
		}
		top.types("p")
		top.sees("[y/N]")
		top.types("y")
		top.sees("resumed")
		top.types("q")
		top.leaves()
		worker.kill()
	})
}

func TestTopGivesTheTerminalBackAtSIGTERM(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.load(10)
	top := p.startInTerminal("top")
	top.sees("0.0%", "10")
	top.signal(syscall.SIGTERM)
	top.leaves()
}

func TestTopOutlivesItsDatabase(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Cluster(t, pgcluster.Options{})
	p := newPlace(t)
	p.database = cluster.URL("postgres")
	p.ok("migrate", "up")
	p.load(10)
	top := p.startInTerminal("top")
	top.sees("fresh 10", "ERRORS  none")
	if err := cluster.Kill(); err != nil {
		t.Fatal(err)
	}
	top.sees("no answer since", "): connection refused", "fresh 10")
	if err := cluster.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.load(20) // the first ten are there already
	top.sees("fresh 20")
	if strings.Contains(top.screen(), "no answer") {
		t.Errorf("it has not been noticed that the database is back:\n%s", top.screen())
	}
	top.types("\x03")
	top.leaves()
}

func TestTopNeedsATerminal(t *testing.T) {
	t.Parallel()
	p := newPlainPlace(t)
	p.load(1)
	p.run("top").wants(2, "terminal", "windrow status --watch")
}
