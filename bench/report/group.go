package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/windrow-go/windrow/bench"
)

// isWindrow tells the subjects that the others are compared with: "windrow", and
// "windrow on SQLite".
func isWindrow(subject string) bool {
	return subject == "windrow" || strings.HasPrefix(subject, "windrow ")
}

// identity is what rounds of the same measurement have in common.
type identity struct {
	scenario   string
	subject    string
	condition  string // the result's case
	parameters bench.Parameters
	place      place
}

// group is the rounds of one measurement.
type group struct {
	identity
	rounds []bench.Result // in order
}

// measure is one value of a result; false where it was not measured.
type measure func(bench.Result) (float64, bool)

// values are those of the rounds where it was measured.
func (g group) values(m measure) []float64 {
	var values []float64
	for _, r := range g.rounds {
		if v, ok := m(r); ok {
			values = append(values, v)
		}
	}
	return values
}

// median is false where no round measured it.
func (g group) median(m measure) (float64, bool) {
	values := g.values(m)
	return median(values), len(values) > 0
}

func (g group) rates() []float64 {
	return g.values(func(r bench.Result) (float64, bool) { return r.RowsPerSecond, true })
}

// groups gathers the results of a kind, in the order in which they are shown.
func groups(results []bench.Result, places *places) []group {
	at := map[identity]int{}
	var all []group
	for _, r := range results {
		id := identity{r.Scenario, r.Subject, r.Case, r.Parameters, places.of(r)}
		i, ok := at[id]
		if !ok {
			i = len(all)
			at[id] = i
			all = append(all, group{identity: id})
		}
		all[i].rounds = append(all[i].rounds, r)
	}
	for _, g := range all {
		slices.SortStableFunc(g.rounds, func(a, b bench.Result) int {
			return cmp.Or(cmp.Compare(a.Round, b.Round), a.Began.Compare(b.Began))
		})
	}
	slices.SortStableFunc(all, func(a, b group) int { return compare(a.identity, b.identity) })
	return all
}

func compare(a, b identity) int {
	p, q := a.parameters, b.parameters
	return cmp.Or(
		compareScenarios(a.scenario, b.scenario),
		cmp.Compare(a.place.machine, b.place.machine),
		cmp.Compare(a.place.server, b.place.server),
		compareNatural(a.condition, b.condition),
		cmp.Compare(p.Payload, q.Payload),
		compareSubjects(a.subject, b.subject),
		cmp.Compare(p.Rows, q.Rows),
		cmp.Compare(p.Processes, q.Processes),
		cmp.Compare(p.Concurrency, q.Concurrency),
		cmp.Compare(p.Batch, q.Batch),
		cmp.Compare(p.Seconds, q.Seconds),
	)
}

// compareSubjects puts windrow first.
func compareSubjects(a, b string) int {
	if isWindrow(a) != isWindrow(b) {
		if isWindrow(a) {
			return -1
		}
		return 1
	}
	return compareNatural(a, b)
}

// compareNatural compares text, and the numbers in it as numbers: "8 x 1" comes
// before "40 x 1".
func compareNatural(a, b string) int {
	for a != "" && b != "" {
		m, restA := leadingNumber(a)
		n, restB := leadingNumber(b)
		order := cmp.Compare(m, n)
		if m < 0 || n < 0 {
			order, restA, restB = cmp.Compare(a[0], b[0]), a[1:], b[1:]
		}
		if order != 0 {
			return order
		}
		a, b = restA, restB
	}
	return cmp.Compare(len(a), len(b))
}

// leadingNumber is -1 where text does not begin with one.
func leadingNumber(text string) (n int64, rest string) {
	rest = strings.TrimLeft(text, "0123456789")
	n, err := strconv.ParseInt(text[:len(text)-len(rest)], 10, 64)
	if err != nil {
		return -1, text
	}
	return n, rest
}

// setup is what subjects that are compared have in common: scenario, case, place,
// and the size of the rows. Not the fleet or the batch: each may have its own best.
func (id identity) setup() identity {
	return identity{scenario: id.scenario, condition: id.condition, place: id.place,
		parameters: bench.Parameters{Payload: id.parameters.Payload}}
}

// partition splits groups by a key, in the order of first appearance.
func partition[K comparable](all []group, key func(group) K) [][]group {
	at := map[K]int{}
	var parts [][]group
	for _, g := range all {
		k := key(g)
		i, ok := at[k]
		if !ok {
			i = len(parts)
			at[k] = i
			parts = append(parts, nil)
		}
		parts[i] = append(parts[i], g)
	}
	return parts
}

// subjects are the different ones, windrow first.
func subjects(all []group) []string {
	var names []string
	for _, g := range all {
		names = append(names, g.subject)
	}
	slices.SortFunc(names, compareSubjects)
	return slices.Compact(names)
}

// differ tells whether groups differ in something.
func differ[K comparable](all []group, key func(group) K) bool {
	return slices.ContainsFunc(all, func(g group) bool { return key(g) != key(all[0]) })
}
