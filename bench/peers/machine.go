package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/windrow-go/windrow/bench"
)

func thisMachine() bench.Machine {
	return bench.Machine{
		System:    runtime.GOOS + "/" + runtime.GOARCH,
		Processor: fromProc("cpuinfo", "model name"),
		Cores:     runtime.NumCPU(),
		Memory:    kilobytes(fromProc("meminfo", "MemTotal")),
		Go:        runtime.Version(),
	}
}

// peakMemory is the most that this process has had in memory, in bytes; 0 where
// there is no /proc. The usual meter of a process's children begins with the
// memory of the parent that forked them.
func peakMemory() int64 { return kilobytes(fromProc("self/status", "VmHWM")) }

// fromProc returns the first value of a name in a file of /proc; "" where there is
// none.
func fromProc(file, name string) string {
	text, err := os.ReadFile(filepath.Join("/proc", file))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// kilobytes reads "123 kB", as bytes; 0 if it is something else.
func kilobytes(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSuffix(text, " kB"), 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}

// processorTime is what a server has used so far: its postmaster, ended children
// included, and the children that live. 0 where there is no /proc.
func processorTime(postmaster int) time.Duration {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0
	}
	var ticks int64
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has just ended
		}
		ticks += serverTicks(string(text), strconv.Itoa(postmaster))
	}
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every Linux
	return time.Duration(ticks) * tick
}

// serverTicks reads a line of /proc/PID/stat; 0 for a process that isn't the
// server's. After the name in parentheses come state and parent, and from the
// twelfth on: user, system, and both of ended children.
func serverTicks(line, postmaster string) int64 {
	pid, rest, found := strings.Cut(line, " (")
	end := strings.LastIndex(rest, ") ")
	if !found || end < 0 {
		return 0
	}
	fields := strings.Fields(rest[end+2:])
	if len(fields) < 15 {
		return 0
	}
	counted := fields[11:13]
	if pid == postmaster {
		counted = fields[11:15]
	}
	if pid != postmaster && fields[1] != postmaster {
		return 0
	}
	var sum int64
	for _, field := range counted {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0
		}
		sum += n
	}
	return sum
}
