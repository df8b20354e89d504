package report

import (
	"maps"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/windrow-go/windrow/bench"
)

// results is the main table of a scenario.
func (p *page) results(all []group) string {
	t := &table{rows: len(all)}
	t.text("subject", func(i int) string { return all[i].subject })
	t.text("case", func(i int) string { return all[i].condition })
	t.text("processes × slots", func(i int) string { return all[i].fleet() })
	t.number("batch", func(i int) string { return all[i].batch() })
	t.number("rows", func(i int) string { return all[i].tableRows() })
	p.rareColumns(t, func(i int) group { return all[i] })
	t.varying("rounds", true, func(i int) string { return whole(all[i].roundCount()) })
	t.number("rows/s", func(i int) string { return spread(all[i].rates(), plain) })
	t.number("check-out p50 / p95 / p99, ms", func(i int) string { return checkOutTimes(all[i]) })
	t.number("conflicts per check-out", func(i int) string { return shown(all[i], conflictShare, percent) })
	t.number("WAL, bytes/row", func(i int) string { return shown(all[i], wal, plain) })
	t.number("server CPU, µs/row", func(i int) string { return shown(all[i], serverMicros, plain) })
	t.number("client CPU, µs/row", func(i int) string { return shown(all[i], clientMicros, plain) })
	t.number("lost / doubled", func(i int) string { return lossesOf(all[i]) })
	return t.String()
}

// rareColumns are those of parameters that mostly are the same everywhere.
func (p *page) rareColumns(t *table, at func(row int) group) {
	t.varying("payload, bytes", true, func(i int) string { return whole(at(i).payload()) })
	t.varying("limit, s", true, func(i int) string {
		if at(i).limit() == 0 {
			return ""
		}
		return plain(at(i).limit())
	})
	t.varying("machine", false, func(i int) string { return p.machineOf(at(i)) })
	t.varying("server", false, func(i int) string { return p.serverOf(at(i)) })
}

// identityColumns tell groups apart, with no more columns than that takes.
func (p *page) identityColumns(t *table, at func(row int) group) {
	t.varying("case", false, func(i int) string { return at(i).condition })
	t.varying("processes × slots", false, func(i int) string { return at(i).fleet() })
	t.varying("batch", true, func(i int) string { return at(i).batch() })
	t.varying("rows", true, func(i int) string { return at(i).tableRows() })
	p.rareColumns(t, at)
}

// ratios is the table of windrow beside the others.
func (p *page) ratios(all []ratio) {
	if len(all) == 0 {
		return
	}
	t := &table{rows: len(all)}
	t.text("windrow compared with", func(i int) string { return all[i].other.subject })
	p.identityColumns(t, func(i int) group { return all[i].windrow })
	if slices.ContainsFunc(all, func(r ratio) bool { return r.other.batch() != r.windrow.batch() }) {
		t.number("its batch", func(i int) string { return all[i].other.batch() })
	}
	t.number("rate of windrow", func(i int) string { return times(median(all[i].rounds)) })
	t.number("lowest–highest", func(i int) string { return lowToHigh(all[i].rounds) })
	t.number("rounds", func(i int) string { return whole(len(all[i].rounds)) })
	p.paragraph("%s", t)
}

// times writes a ratio.
func times(v float64) string { return significant(v, 3) + "×" }

func lowToHigh(values []float64) string {
	if len(values) < 2 {
		return ""
	}
	return times(slices.Min(values)) + "–" + times(slices.Max(values))
}

// figures is the table of the scenario's own figures, and of what else was noted.
func (p *page) figures(all []group) {
	names := map[string]bool{}
	all = slices.DeleteFunc(slices.Clone(all), func(g group) bool { return !g.hasFigures() })
	for _, g := range all {
		for _, r := range g.rounds {
			for name := range r.Figures {
				names[name] = true
			}
		}
	}
	t := &table{rows: len(all)}
	t.text("subject", func(i int) string { return all[i].subject })
	p.identityColumns(t, func(i int) group { return all[i] })
	identifying := len(t.columns)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		t.number("`"+name+"`", func(i int) string { return shown(all[i], figure(name), plain) })
	}
	t.number("dead tuples left", func(i int) string { return shown(all[i], deadTuples, plain) })
	t.number("client memory, peak", func(i int) string { return shown(all[i], clientMemory, bytesText) })
	if len(t.columns) > identifying {
		p.paragraph("%s", t)
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if about := bench.AboutFigure(name); about != "" {
			p.WriteString("- `" + name + "`: " + about + "\n")
		}
	}
	if len(names) > 0 {
		p.WriteString("\n")
	}
}

func (g group) hasFigures() bool {
	return slices.ContainsFunc(g.rounds, func(r bench.Result) bool {
		return len(r.Figures) > 0 || r.DeadTuples > 0 || r.ClientMemory > 0
	})
}

// shown is the median, or empty.
func shown(g group, m measure, format func(float64) string) string {
	value, ok := g.median(m)
	if !ok {
		return ""
	}
	return format(value)
}

func checkOutTimes(g group) string {
	var texts []string
	for _, m := range []measure{checkOutP50, checkOutP95, checkOutP99} {
		text := shown(g, m, plain)
		if text == "" {
			return ""
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " / ")
}

func (g group) losses() (lost, doubled int64) {
	for _, r := range g.rounds {
		lost += r.Lost
		doubled += r.Doubled
	}
	return lost, doubled
}

func (g group) unsound() bool {
	lost, doubled := g.losses()
	return lost+doubled > 0
}

// lossesOf is in bold where something went wrong.
func lossesOf(g group) string {
	lost, doubled := g.losses()
	text := whole(lost) + " / " + whole(doubled)
	if g.unsound() {
		return "**" + text + "**"
	}
	return text
}

func bytesText(v float64) string { return humanize.IBytes(uint64(v)) }

func figure(name string) measure {
	return func(r bench.Result) (float64, bool) {
		v, ok := r.Figures[name]
		return v, ok
	}
}

// conflictShare needs check-outs to be counted; no conflicts are a value.
func conflictShare(r bench.Result) (float64, bool) {
	return r.ConflictsPerCheckOut, r.CheckOuts > 0
}

func checkOutP50(r bench.Result) (float64, bool)  { return r.CheckOutP50, r.CheckOutP50 > 0 }
func checkOutP95(r bench.Result) (float64, bool)  { return r.CheckOutP95, r.CheckOutP95 > 0 }
func checkOutP99(r bench.Result) (float64, bool)  { return r.CheckOutP99, r.CheckOutP99 > 0 }
func wal(r bench.Result) (float64, bool)          { return r.WALBytesPerRow, r.WALBytesPerRow > 0 }
func serverMicros(r bench.Result) (float64, bool) { return r.ServerMicros, r.ServerMicros > 0 }
func clientMicros(r bench.Result) (float64, bool) { return r.ClientMicros, r.ClientMicros > 0 }
func deadTuples(r bench.Result) (float64, bool)   { return float64(r.DeadTuples), r.DeadTuples > 0 }
func clientMemory(r bench.Result) (float64, bool) { return float64(r.ClientMemory), r.ClientMemory > 0 }
