package doctor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/windrow-go/windrow/migrations"
)

// locks are what other processes hold on the file during the whole of a short while.
type locks struct {
	writers, readers []int // process ids
	alone            []int // who has the file for itself, as a lone run
}

// The bytes of the -shm file that SQLite locks in WAL mode: the writer's, and one
// for each of five read marks.
const (
	writeByte     = 120
	firstReadByte = 123
	lastReadByte  = 127
)

const (
	lockSamples = 6
	lockEvery   = 100 * time.Millisecond
)

// lookAtFileLocks lists who holds locks. Those of a worker last some milliseconds;
// so only one that is there every time, for half a second, is worth a word. No lock
// is taken for that: the system lists them.
func lookAtFileLocks(ctx context.Context, f *file) ([]Finding, error) {
	held, err := f.heldNow()
	if errors.Is(err, os.ErrNotExist) {
		return fine("this system does not list them"), nil
	}
	for i := 1; i < lockSamples && err == nil && len(held.writers)+len(held.readers) > 0; i++ {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lockEvery):
		}
		var now locks
		now, err = f.heldNow()
		held.writers, held.readers = both(held.writers, now.writers), both(held.readers, now.readers)
	}
	if err != nil {
		return nil, err
	}
	f.locks = held
	var findings []Finding
	if len(held.writers) > 0 {
		findings = append(findings, Finding{Severity: Warning, What: "the file is locked for writing by " + processes(held.writers) + ", for half a second at least",
			Why: "nobody else can check out or in meanwhile", Cure: "kill " + numbers(held.writers) + "  # if it is stuck; nothing that was stored is lost"})
	}
	if len(held.alone) > 0 {
		findings = append(findings, Finding{Severity: Note, What: "the file is in the hands of " + processes(held.alone) + " alone: a windrow run, or a migration",
			Why: "a second run on it exits with 5; it is free again when that one ends", Cure: "# wait, or stop it: kill -TERM " + numbers(held.alone)})
	}
	return orFine(findings, "nobody keeps others out"), nil
}

// heldNow reads the system's list of locks.
func (f *file) heldNow() (locks, error) {
	text, err := os.ReadFile("/proc/locks")
	if err != nil {
		return locks{}, err
	}
	memory, lone := inodeOf(f.path+"-shm"), inodeOf(f.path+migrations.LockSuffix)
	var held locks
	for line := range strings.Lines(string(text)) {
		l, ok := parseLock(line)
		if !ok || l.pid == os.Getpid() {
			continue
		}
		switch {
		case l.inode == memory && l.writes && l.covers(writeByte, writeByte):
			held.writers = append(held.writers, l.pid)
		case l.inode == memory && !l.writes && l.covers(firstReadByte, lastReadByte):
			held.readers = append(held.readers, l.pid)
		case l.inode == lone && l.writes && l.kind == "FLOCK":
			held.alone = append(held.alone, l.pid)
		}
	}
	return held, nil
}

// systemLock is a line of /proc/locks.
type systemLock struct {
	kind        string
	writes      bool
	pid         int // -1: not known
	inode       uint64
	first, last uint64
}

// parseLock reads "1: POSIX ADVISORY WRITE 25329 fe:00:10183044 120 120". A waiting
// one has an arrow in it, and is passed over.
func parseLock(line string) (l systemLock, ok bool) {
	parts := strings.Fields(line)
	if len(parts) != 8 {
		return l, false
	}
	place := strings.Split(parts[5], ":")
	var errs [4]error
	l.kind, l.writes = parts[1], parts[3] == "WRITE"
	l.pid, errs[0] = strconv.Atoi(parts[4])
	l.inode, errs[1] = strconv.ParseUint(place[len(place)-1], 10, 64)
	l.first, errs[2] = strconv.ParseUint(parts[6], 10, 64)
	l.last = 1<<63 - 1
	if parts[7] != "EOF" {
		l.last, errs[3] = strconv.ParseUint(parts[7], 10, 64)
	}
	return l, errors.Join(errs[:]...) == nil && l.inode != 0
}

func (l systemLock) covers(first, last uint64) bool { return l.first <= last && first <= l.last }

// both are the ids that are in both lists.
func both(a, b []int) []int {
	return slices.DeleteFunc(slices.Clone(a), func(pid int) bool { return !slices.Contains(b, pid) })
}

// processes names them, as far as the system tells: the arguments stay out, which
// may hold a password.
func processes(pids []int) string {
	var names []string
	for _, pid := range slices.Compact(slices.Sorted(slices.Values(pids))) {
		switch name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); {
		case pid < 0:
			names = append(names, "a process that the system does not name")
		case err != nil:
			names = append(names, fmt.Sprintf("process %d", pid))
		default:
			names = append(names, fmt.Sprintf("process %d (%s)", pid, strings.TrimSpace(string(name))))
		}
	}
	return strings.Join(names, ", ")
}

func numbers(pids []int) string {
	var list []string
	for _, pid := range slices.Compact(slices.Sorted(slices.Values(pids))) {
		if pid > 0 {
			list = append(list, strconv.Itoa(pid))
		}
	}
	return orDefault(strings.Join(list, " "), "PID")
}

// cutBack is the size to which windrow cuts the log back.
const cutBack = 64 << 20

// lookAtLog tells whether the log (-wal) gets moved into the file.
func lookAtLog(_ context.Context, f *file) ([]Finding, error) {
	info, err := os.Stat(f.path + "-wal")
	if errors.Is(err, os.ErrNotExist) {
		return fine("there is none: nobody has the file open"), nil
	}
	if err != nil {
		return nil, err
	}
	left := max(0, f.log.frames-f.log.moved) * f.header.pageSize
	text := fmt.Sprintf("%s, of which %s are not yet in the file", size(info.Size()), size(left))
	if info.Size() < f.opts.longLog || left < f.opts.longLog/2 {
		return fine(text), nil
	}
	finding := Finding{Severity: Warning, What: "the log beside the file has " + text,
		Why:  "a reader that stays keeps the log from being moved into the file: it grows without bound, and every read gets slower",
		Cure: "fuser -v " + shellQuoted(f.path) + "  # shows who has the file open; end the one that reads on and on"}
	if len(f.locks.readers) > 0 {
		finding.What += "; " + processes(f.locks.readers) + " reads an old state"
		finding.Cure = "kill " + numbers(f.locks.readers) + "  # if it is stuck"
	}
	return []Finding{finding}, nil
}

// walIndex is how many pages are in the log, and how many of them have been moved
// into the file.
type walIndex struct{ frames, moved int64 }

// readWALIndex reads it out of the -shm file.
func readWALIndex(path string) (walIndex, error) {
	file, err := os.Open(path)
	if err != nil {
		return walIndex{}, err
	}
	defer file.Close()
	const lastFrame, backfilled = 16, 96
	head := make([]byte, backfilled+4)
	if _, err := io.ReadFull(file, head); err != nil {
		return walIndex{}, fmt.Errorf("%s: %w", path, err)
	}
	return walIndex{
		frames: int64(binary.NativeEndian.Uint32(head[lastFrame:])),
		moved:  int64(binary.NativeEndian.Uint32(head[backfilled:])),
	}, nil
}
