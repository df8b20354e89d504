package report

import (
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
)

// fromZero makes a linear axis from 0 to a round number above the highest value.
func fromZero(axis *plot.Axis) {
	const most = 6
	step := roundStep(axis.Max / (most - 1))
	top := max(1, math.Ceil(axis.Max/step-1e-9)) * step
	var ticks []plot.Tick
	for i := 0; float64(i)*step <= top+step/2; i++ {
		v := float64(i) * step
		ticks = append(ticks, plot.Tick{Value: v, Label: tickText(v)})
	}
	axis.Min, axis.Max = 0, top
	axis.Tick.Marker = plot.ConstantTicks(ticks)
}

// roundStep is 1, 2 or 5 times a power of ten, and at least so much.
func roundStep(atLeast float64) float64 {
	if atLeast <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(atLeast)))
	for _, factor := range []float64{1, 2, 5} {
		if factor*power >= atLeast*(1-1e-9) {
			return factor * power
		}
	}
	return 10 * power
}

// tickText is without the zeros that only measured values need.
func tickText(v float64) string {
	text := plain(v)
	if strings.Contains(text, ".") {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// atValues makes a logarithmic axis with ticks at the measured values; a label that
// would run into the one before is left out.
func atValues(axis *plot.Axis, values []float64) {
	const length, gap = chartWidth - 65, 8
	axis.Scale = plot.LogScale{}
	var ticks []plot.Tick
	free := math.Inf(-1) // where the next label may begin
	for _, v := range values {
		tick := plot.Tick{Value: v}
		middle := math.Log(v/axis.Min) / math.Log(axis.Max/axis.Min) * float64(length)
		half := float64(axis.Tick.Label.Width(tickText(v))) / 2
		if middle-half >= free {
			tick.Label = tickText(v)
			free = middle + half + gap
		}
		ticks = append(ticks, tick)
	}
	axis.Tick.Marker = plot.ConstantTicks(ticks)
}

// overDecades makes a logarithmic axis from one of 1, 2, 5, 10 ... to another, with
// ticks at those between.
func overDecades(axis *plot.Axis) {
	axis.Scale = plot.LogScale{}
	var ticks []plot.Tick
	for power := math.Floor(math.Log10(axis.Min)); ; power++ {
		for _, factor := range []float64{1, 2, 5} {
			v := factor * math.Pow(10, power)
			if v <= axis.Min {
				ticks = nil
			}
			ticks = append(ticks, plot.Tick{Value: v, Label: tickText(v)})
			if v >= axis.Max {
				axis.Min, axis.Max = ticks[0].Value, v
				axis.Tick.Marker = plot.ConstantTicks(ticks)
				return
			}
		}
	}
}

// grid has horizontal lines only.
func grid() plot.Plotter {
	g := plotter.NewGrid()
	g.Vertical.Width = 0
	g.Horizontal.Color = lightGrey
	g.Horizontal.Width = 0.75
	return g
}
