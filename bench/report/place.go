package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/windrow-go/windrow/bench"
)

// place is where a run was measured: indexes into places.
type place struct{ machine, server int }

// places are the machines and servers of all results.
type places struct {
	machines []string
	servers  []bench.Server
}

// of returns the place of a result, and notes it if it is new.
func (p *places) of(r bench.Result) place {
	return place{machine: p.machine(r.Machine), server: p.server(r.Server)}
}

// machine compares machines as they are written: the exact memory changes with
// each boot.
func (p *places) machine(m bench.Machine) int {
	text := describeMachine(m)
	if i := slices.Index(p.machines, text); i >= 0 {
		return i
	}
	p.machines = append(p.machines, text)
	return len(p.machines) - 1
}

// server takes servers for the same whose settings do not contradict each other:
// measuring programs may state more or fewer of them.
func (p *places) server(s bench.Server) int {
	for i, known := range p.servers {
		if known.Engine == s.Engine && known.Version == s.Version && agree(known.Settings, s.Settings) {
			maps.Copy(known.Settings, s.Settings)
			return i
		}
	}
	s.Settings = maps.Clone(s.Settings)
	if s.Settings == nil {
		s.Settings = map[string]string{}
	}
	p.servers = append(p.servers, s)
	return len(p.servers) - 1
}

func agree(a, b map[string]string) bool {
	for name, value := range a {
		if other, ok := b[name]; ok && other != value {
			return false
		}
	}
	return true
}

func describeMachine(m bench.Machine) string {
	var parts []string
	for _, part := range []string{m.System, m.Processor} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if m.Cores > 0 {
		parts = append(parts, plural(m.Cores, "core"))
	}
	if m.Memory > 0 {
		parts = append(parts, humanize.IBytes(uint64(m.Memory))+" of memory")
	}
	if m.Go != "" {
		parts = append(parts, m.Go)
	}
	return strings.Join(parts, ", ")
}

func describeServer(s bench.Server) string {
	text := strings.TrimSpace(s.Engine + " " + s.Version)
	var settings []string
	for _, name := range slices.Sorted(maps.Keys(s.Settings)) {
		settings = append(settings, fmt.Sprintf("`%s` %s", name, s.Settings[name]))
	}
	if len(settings) == 0 {
		return text
	}
	return text + ": " + strings.Join(settings, ", ")
}

// machineName is how the page refers to a machine; empty where there is only one.
func (p *places) machineName(i int) string {
	if len(p.machines) < 2 {
		return ""
	}
	return fmt.Sprintf("M%d", i+1)
}

// serverName is the like for a server.
func (p *places) serverName(i int) string {
	if len(p.servers) < 2 {
		return ""
	}
	return fmt.Sprintf("S%d", i+1)
}
