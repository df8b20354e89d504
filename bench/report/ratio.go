package report

import (
	"slices"

	"github.com/windrow-go/windrow/bench"
)

// ratio is how windrow did beside another subject in the same setup.
type ratio struct {
	windrow group
	other   group
	rounds  []float64 // windrow's rate divided by the other's, round by round
}

// ratios compares within one scenario.
func ratios(all []group) []ratio {
	var found []ratio
	for _, setup := range partition(all, func(g group) identity { return g.setup() }) {
		for _, subject := range subjects(setup) {
			if !isWindrow(subject) {
				found = append(found, ratiosTo(subject, setup)...)
			}
		}
	}
	return found
}

func ratiosTo(subject string, setup []group) []ratio {
	var found []ratio
	for _, ours := range setup {
		if !isWindrow(ours.subject) {
			continue
		}
		for _, other := range rivals(subject, ours.parameters, setup) {
			if rounds := byRound(ours, other); len(rounds) > 0 {
				found = append(found, ratio{windrow: ours, other: other, rounds: rounds})
			}
		}
	}
	return found
}

// rivals are the groups of a subject that ours is compared with: where it ran with
// several parameters, those that are like ours.
func rivals(subject string, ours bench.Parameters, setup []group) []group {
	all := slices.DeleteFunc(slices.Clone(setup), func(g group) bool { return g.subject != subject })
	for _, parameter := range []func(bench.Parameters) int{
		func(p bench.Parameters) int { return p.Rows },
		func(p bench.Parameters) int { return p.Processes },
		func(p bench.Parameters) int { return p.Concurrency },
		func(p bench.Parameters) int { return p.Batch },
	} {
		alike := slices.DeleteFunc(slices.Clone(all), func(g group) bool { return parameter(g.parameters) != parameter(ours) })
		if len(alike) > 0 {
			all = alike
		}
	}
	return all
}

// byRound divides the rates of the rounds that both had. A round measured more than
// once, in several files, is matched in order.
func byRound(ours, other group) []float64 {
	theirs := map[int][]bench.Result{}
	for _, r := range other.rounds {
		theirs[r.Round] = append(theirs[r.Round], r)
	}
	var found []float64
	for _, r := range ours.rounds {
		same := theirs[r.Round]
		if len(same) == 0 {
			continue
		}
		theirs[r.Round] = same[1:]
		if same[0].RowsPerSecond > 0 {
			found = append(found, r.RowsPerSecond/same[0].RowsPerSecond)
		}
	}
	return found
}
