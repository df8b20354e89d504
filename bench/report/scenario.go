package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/windrow-go/windrow/bench"
)

// Scenarios with charts of their own.
const (
	throughput = "throughput"
	contention = "contention"
	scale      = "scale"
	snapshot   = "snapshot"
)

// explanation is a sentence about a scenario; empty for one that bench doesn't know.
func explanation(name string) string {
	about := bench.About(name)
	if about == "" {
		return ""
	}
	about = strings.ToUpper(about[:1]) + about[1:]
	if strings.ContainsAny(about[len(about)-1:], ".?") {
		return about
	}
	return about + "."
}

// compareScenarios puts those that bench doesn't know last.
func compareScenarios(a, b string) int {
	known := bench.Names()
	rank := func(name string) int {
		if i := slices.Index(known, name); i >= 0 {
			return i
		}
		return len(known)
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), compareNatural(a, b))
}

// command measures a scenario again. The flags are for windrow's own runs, where it
// has some: what it is compared with may have a fleet of another size. Parameters
// that differ within the scenario are the scenario's own affair and left out.
func command(all []group) string {
	own := slices.DeleteFunc(slices.Clone(all), func(g group) bool { return !isWindrow(g.subject) })
	if len(own) == 0 {
		own = all
	}
	words := []string{"windrow", "bench", own[0].scenario}
	flag := func(name string, value func(group) float64) {
		if v := value(own[0]); v > 0 && !differ(own, value) {
			words = append(words, fmt.Sprintf("--%s %.15g", name, v))
		}
	}
	flag("rows", byRows)
	flag("processes", byProcesses)
	flag("concurrency", func(g group) float64 { return float64(g.parameters.Concurrency) })
	flag("batch", func(g group) float64 { return float64(g.parameters.Batch) })
	flag("payload", func(g group) float64 { return float64(g.parameters.Payload) })
	flag("seconds", group.limit)
	if rounds := own[0].roundCount(); rounds > 1 && !differ(own, group.roundCount) {
		words = append(words, fmt.Sprintf("--rounds %d", rounds))
	}
	return strings.Join(words, " ")
}
