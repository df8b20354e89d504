package report

import (
	"cmp"
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// bars compares the subjects of one setup by their rate, the fastest on top.
func bars(setup []group, places *places, name string) (chart, error) {
	setup = slices.Clone(setup)
	// A plot counts from below.
	slices.SortStableFunc(setup, func(a, b group) int {
		return cmp.Compare(median(a.rates()), median(b.rates()))
	})
	p := newPlot("", "")
	p.Add(nothing{max: highest(setup), count: len(setup)})
	for i, g := range setup {
		if err := drawBar(p, g, i); err != nil {
			return chart{}, err
		}
	}
	p.NominalY(labels(setup, places)...)
	p.Y.Tick.Length = 0
	p.X.Min = 0
	p.HideX()
	const barSpace, headSpace = 21, 58
	return chart{name: name, title: setup[0].scenario + ": rows/s, median and range of the rounds", subtitle: common(setup, places),
		height: headSpace + barSpace*vg.Length(len(setup)), plot: p}, nil
}

func highest(all []group) float64 {
	var most float64
	for _, g := range all {
		most = max(most, slices.Max(g.rates()))
	}
	if most == 0 {
		return 1 // an axis needs a length
	}
	return most
}

// nothing gives a plot of bars its range.
type nothing struct {
	max   float64
	count int
}

func (nothing) Plot(draw.Canvas, *plot.Plot) {}

// DataRange leaves half a bar above and below.
func (n nothing) DataRange() (xmin, xmax, ymin, ymax float64) {
	return 0, n.max, -0.5, float64(n.count) - 0.5
}

// drawBar adds a bar with its value, and a thin line from the lowest round to the
// highest.
func drawBar(p *plot.Plot, g group, at int) error {
	rates := g.rates()
	middle, low, high := median(rates), slices.Min(rates), slices.Max(rates)
	bar, err := plotter.NewBarChart(plotter.Values{middle}, 14)
	if err != nil {
		return err
	}
	bar.Horizontal, bar.XMin = true, float64(at)
	bar.LineStyle.Width = 0
	bar.Color = barGrey
	if isWindrow(g.subject) {
		bar.Color = palette(0)
	}
	value, err := plotter.NewLabels(plotter.XYLabels{
		XYs: plotter.XYs{{X: high, Y: float64(at)}}, Labels: []string{plain(middle)}})
	if err != nil {
		return err
	}
	value.TextStyle[0] = style(sans(9), ink)
	value.TextStyle[0].YAlign = draw.YCenter
	value.Offset = vg.Point{X: 5, Y: 1.5}
	p.Add(bar, value)
	if low == high {
		return nil
	}
	return drawRange(p, low, high, float64(at))
}

func drawRange(p *plot.Plot, low, high, at float64) error {
	stroke, err := plotter.NewLine(plotter.XYs{{X: low, Y: at}, {X: high, Y: at}})
	if err != nil {
		return err
	}
	halo := *stroke
	halo.LineStyle = draw.LineStyle{Color: color.White, Width: 3}
	stroke.LineStyle = draw.LineStyle{Color: ink, Width: 1}
	p.Add(&halo, stroke)
	return nil
}
