package report

import (
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// line is one line of a chart.
type line struct {
	label  string
	points plotter.XYs
	colour color.Color
	dashes []vg.Length
	glyph  draw.GlyphDrawer // nil: no mark at each point
}

// draw adds the line to a plot and returns its entry of the legend.
func (l line) draw(p *plot.Plot) (entry, error) {
	stroke, err := plotter.NewLine(l.points)
	if err != nil {
		return entry{}, err
	}
	stroke.LineStyle = draw.LineStyle{Color: l.colour, Width: 1.75, Dashes: l.dashes}
	p.Add(stroke)
	e := entry{label: l.label, thumbs: []plot.Thumbnailer{stroke}}
	if l.glyph == nil {
		return e, nil
	}
	marks, err := plotter.NewScatter(l.points)
	if err != nil {
		return entry{}, err
	}
	marks.GlyphStyle = draw.GlyphStyle{Color: l.colour, Radius: 2.75, Shape: l.glyph}
	p.Add(marks)
	e.thumbs = append(e.thumbs, marks)
	return e, nil
}

// drawLines adds all of them over a grid. A single line needs no legend.
func drawLines(p *plot.Plot, lines []line) ([]entry, error) {
	p.Add(grid())
	var legend []entry
	for _, l := range lines {
		e, err := l.draw(p)
		if err != nil {
			return nil, err
		}
		legend = append(legend, e)
	}
	if len(legend) == 1 {
		return nil, nil
	}
	return legend, nil
}

func glyph(i int) draw.GlyphDrawer {
	shapes := []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.CrossGlyph{}, draw.PlusGlyph{}}
	return shapes[i%len(shapes)]
}

// ratesOverTime charts the rows finished in each second, a line for each group;
// false if the runs are too short for that.
func ratesOverTime(all []group, places *places, name string) (chart, bool, error) {
	names := labels(all, places)
	paint := painter(all)
	var lines []line
	for i, g := range all {
		if points := perSecond(g); len(points) >= 3 {
			l := line{label: names[i], points: points}
			l.colour, l.dashes = paint(i)
			lines = append(lines, l)
		}
	}
	if len(lines) == 0 {
		return chart{}, false, nil
	}
	p := newPlot("seconds since the first check-out", "rows/s")
	legend, err := drawLines(p, lines)
	if err != nil {
		return chart{}, false, err
	}
	fromZero(&p.X)
	p.X.Max = longest(lines)
	fromZero(&p.Y)
	return chart{name: name, title: all[0].scenario + ": rate over time", subtitle: common(all, places),
		height: chartHeight, plot: p, legend: legend}, true, nil
}

func longest(lines []line) float64 {
	var end float64
	for _, l := range lines {
		end = max(end, l.points[len(l.points)-1].X)
	}
	return end + 0.5
}

// painter gives each subject a colour, and each of its lines another dash; with one
// subject only, each line has a colour.
func painter(all []group) func(i int) (color.Color, []vg.Length) {
	order := subjects(all)
	if len(order) == 1 {
		return func(i int) (color.Color, []vg.Length) { return palette(i), dashes(i / 7) }
	}
	return func(i int) (color.Color, []vg.Length) {
		earlier := 0
		for _, g := range all[:i] {
			if g.subject == all[i].subject {
				earlier++
			}
		}
		return palette(slices.Index(order, all[i].subject)), dashes(earlier)
	}
}

// perSecond is the median rate over the rounds for each second, in the middle of
// the second, as far as half of the rounds went. The last second of a run counts
// only if the run filled it.
func perSecond(g group) plotter.XYs {
	var points plotter.XYs
	for second := 0; ; second++ {
		var rates []float64
		for _, r := range g.rounds {
			if second < len(r.PerSecond) && float64(second+1) <= r.Seconds {
				rates = append(rates, float64(r.PerSecond[second]))
			}
		}
		if len(rates) == 0 || 2*len(rates) < len(g.rounds) {
			return points
		}
		points = append(points, plotter.XY{X: float64(second) + 0.5, Y: median(rates)})
	}
}
