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

func thisMachine() Machine {
	return Machine{
		System:    runtime.GOOS + "/" + runtime.GOARCH,
		Processor: fromProc("cpuinfo", "model name"),
		Cores:     runtime.NumCPU(),
		Memory:    memory(),
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

func memory() int64 {
	kilobytes, _ := strconv.ParseInt(strings.TrimSuffix(fromProc("meminfo", "MemTotal"), " kB"), 10, 64)
	return kilobytes << 10
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

// cpu is the processor time that the private server has used so far, its ended
// processes included; false for a given server, or where there is no /proc.
func (t *target) cpu() (time.Duration, bool) {
	if t.cluster == nil {
		return 0, false
	}
	postmaster := t.cluster.Pid()
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
	return time.Duration(ticks) * tick, ticks > 0
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
