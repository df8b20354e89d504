package report

import (
	"cmp"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
)

// series splits groups into those that go on one line over x: alike in a key, and in
// the case too where an x would be there twice.
func series(all []group, key func(group) identity, x func(group) float64) [][]group {
	var found [][]group
	for _, part := range partition(all, key) {
		slices.SortStableFunc(part, func(a, b group) int { return cmp.Compare(x(a), x(b)) })
		if repeats(part, x) {
			found = append(found, partition(part, func(g group) identity {
				k := key(g)
				k.condition = g.condition
				return k
			})...)
			continue
		}
		found = append(found, part)
	}
	return slices.DeleteFunc(found, func(part []group) bool { return len(part) < 2 || repeats(part, x) })
}

// repeats tells whether an x is there twice, in groups sorted by it.
func repeats(all []group, x func(group) float64) bool {
	for i := range all[1:] {
		if x(all[i]) == x(all[i+1]) {
			return true
		}
	}
	return false
}

// points are those of one line; groups without the measure are left out.
func points(all []group, x func(group) float64, m measure, factor float64) plotter.XYs {
	var found plotter.XYs
	for _, g := range all {
		if y, ok := g.median(m); ok {
			found = append(found, plotter.XY{X: x(g), Y: y * factor})
		}
	}
	return found
}

func byRows(g group) float64      { return float64(g.parameters.Rows) }
func byProcesses(g group) float64 { return float64(g.parameters.Processes) }

// scaleCharts show the times of check-outs by the size of the table.
func scaleCharts(all []group, places *places) ([]chart, error) {
	all = slices.DeleteFunc(slices.Clone(all), func(g group) bool { return g.parameters.Rows == 0 })
	key := func(g group) identity {
		g.condition, g.parameters.Rows = "", 0
		return g.identity
	}
	var charts []chart
	parts := series(all, key, byRows)
	for i, part := range parts {
		lines := checkOutLines(part)
		if len(lines) == 0 {
			continue
		}
		p := newPlot("rows in the table", "ms")
		legend, err := drawLines(p, lines)
		if err != nil {
			return nil, err
		}
		atValues(&p.X, valuesOf(part, byRows))
		timeAxis(&p.Y)
		charts = append(charts, chart{name: numbered(scale+"-check-out", i, len(parts)),
			title: scale + ": time of a check-out by size of the table", subtitle: common(part, places, "rows"),
			height: chartHeight, plot: p, legend: legend})
	}
	return charts, nil
}

// checkOutLines are the three percentiles, the highest first as in the picture.
func checkOutLines(part []group) []line {
	var lines []line
	for i, percentile := range []struct {
		label string
		m     measure
	}{{"p99", checkOutP99}, {"p95", checkOutP95}, {"p50", checkOutP50}} {
		if xys := points(part, byRows, percentile.m, 1); len(xys) >= 2 {
			lines = append(lines, line{label: percentile.label, points: xys, colour: palette(2 - i), glyph: glyph(2 - i)})
		}
	}
	return lines
}

// timeAxis is linear unless the small times would lie on the ground.
func timeAxis(axis *plot.Axis) {
	const most = 30
	if axis.Min > 0 && axis.Max/axis.Min > most {
		overDecades(axis)
		return
	}
	fromZero(axis)
}

// contentionCharts show the conflicts by the number of processes, a line for each
// batch, a chart for each subject: their conflicts differ by orders of magnitude.
func contentionCharts(all []group, places *places) ([]chart, error) {
	all = slices.DeleteFunc(slices.Clone(all), func(g group) bool { return g.parameters.Processes == 0 })
	key := func(g group) identity {
		g.condition, g.parameters.Processes, g.parameters.Rows = "", 0, 0
		return g.identity
	}
	var charts []chart
	for _, same := range partition(all, func(g group) string { return g.subject }) {
		parts := series(same, key, byProcesses)
		lines := conflictLines(parts, places)
		if len(lines) == 0 {
			continue
		}
		p := newPlot("processes", "conflicts per check-out, %")
		legend, err := drawLines(p, lines)
		if err != nil {
			return nil, err
		}
		drawn := slices.Concat(parts...)
		atValues(&p.X, valuesOf(drawn, byProcesses))
		fromZero(&p.Y)
		charts = append(charts, chart{name: contention + "-" + slug(same[0].subject),
			title: contention + ": conflicts by number of processes", subtitle: common(drawn, places, "processes"),
			height: chartHeight, plot: p, legend: legend})
	}
	return charts, nil
}

func conflictLines(parts [][]group, places *places) []line {
	without := []string{"processes", "rows"}
	var firsts []group
	for _, part := range parts {
		firsts = append(firsts, part[0])
		if differ(part, func(g group) string { return g.condition }) {
			without = append(without, "case") // the first one's would stand for all
		}
	}
	if len(firsts) == 0 {
		return nil
	}
	names := labels(firsts, places, without...)
	var lines []line
	for i, part := range parts {
		if xys := points(part, byProcesses, conflictShare, 100); len(xys) >= 2 {
			lines = append(lines, line{label: names[i], points: xys, colour: palette(i), glyph: glyph(i)})
		}
	}
	return lines
}

// valuesOf are the different ones, in order.
func valuesOf(all []group, value func(group) float64) []float64 {
	var values []float64
	for _, g := range all {
		values = append(values, value(g))
	}
	slices.Sort(values)
	return slices.Compact(values)
}
