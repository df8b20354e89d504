package bench

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// ThisMachine describes the machine that this process runs on.
func ThisMachine() Machine {
	return Machine{
		System:    runtime.GOOS + "/" + runtime.GOARCH,
		Processor: fromProc("cpuinfo", "model name"),
		Cores:     runtime.NumCPU(),
		Memory:    kilobytes(fromProc("meminfo", "MemTotal")),
		Go:        runtime.Version(),
	}
}

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

// PeakMemory is the most that this process has had in memory, in bytes; 0 where
// there is no /proc. What a parent is told of a child's memory begins with the
// parent's own, from before the child became another program.
func PeakMemory() int64 { return kilobytes(fromProc("self/status", "VmHWM")) }

// kilobytes reads "123 kB", as bytes; 0 if it is something else.
func kilobytes(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSuffix(text, " kB"), 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}

// stated are the settings that matter for speed.
var stated = []string{
	"shared_buffers", "max_wal_size", "fsync", "synchronous_commit", "full_page_writes", "wal_level",
	"max_connections", "autovacuum", "huge_pages", "max_pred_locks_per_transaction", "default_transaction_isolation",
}

func (t *target) server(ctx context.Context) (Server, error) {
	s := Server{Engine: "PostgreSQL", Settings: map[string]string{}}
	var rows []struct{ Name, Value string }
	err := t.db.WithContext(ctx).Raw(`SELECT name, current_setting(name) AS value FROM pg_settings WHERE name IN ?`,
		append([]string{"server_version"}, stated...)).Scan(&rows).Error
	for _, row := range rows {
		if row.Name == "server_version" {
			s.Version = row.Value
			continue
		}
		s.Settings[row.Name] = row.Value
	}
	return s, err
}

// cpu is the processor time that the private server has used so far; 0 for a given
// server.
func (t *target) cpu() time.Duration {
	if t.cluster == nil {
		return 0
	}
	return ServerTime(t.cluster.Pid())
}

// ServerTime is the processor time that a server has used so far: its postmaster's,
// that of its ended processes, and of those that live. 0 where there is no /proc.
func ServerTime(postmaster int) time.Duration {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var ticks int64
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has just ended
		}
		ticks += ticksOf(string(text), postmaster)
	}
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every Linux
	return time.Duration(ticks) * tick
}

// ticksOf reads a line of /proc/PID/stat: the time of the postmaster with its ended
// children, or of one of its living children; else 0.
func ticksOf(stat string, postmaster int) int64 {
	pid, rest, ok := strings.Cut(stat, " (")
	end := strings.LastIndex(rest, ") ")
	if !ok || end < 0 {
		return 0
	}
	fields := strings.Fields(rest[end+2:]) // from the state on
	if len(fields) < 15 {
		return 0
	}
	number := func(i int) int64 { n, _ := strconv.ParseInt(fields[i], 10, 64); return n }
	switch own := strconv.Itoa(postmaster); {
	case pid == own:
		return number(11) + number(12) + number(13) + number(14)
	case fields[1] == own:
		return number(11) + number(12)
	}
	return 0
}
