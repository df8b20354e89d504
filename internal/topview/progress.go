package topview

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/windrow-go/windrow/model"
)

// leastBar is the narrowest progress bar that says more than the percentage.
const leastBar = 10

// progress is the bar of rows done and failed, with what there is to say of it.
func (s *State) progress(width int) Line {
	o, counts := s.Overview, s.Overview.Counts
	estimated := o.TotalEstimated || o.IsEstimate(model.Done) || o.IsEstimate(model.Failed)
	total := max(counts.Total(), 0)
	if total == 0 {
		return Line{{" no rows yet", Plain}}
	}
	done, failed := max(counts[model.Done], 0), max(counts[model.Failed], 0)
	share := math.Floor(min(float64(done+failed)/float64(total), 1)*1000) / 10 // 100 is all
	text := fmt.Sprintf("  %s%.1f%%", about(estimated, s.glyphs()), share)
	if left := s.timeLeft(estimated); left != "" {
		text += "  " + left
	}
	processed := s.count(done+failed, o.IsEstimate(model.Done) || o.IsEstimate(model.Failed))
	if numbers := fmt.Sprintf("  %s of %s", processed, s.count(total, o.TotalEstimated)); columns(text+numbers)+2+leastBar <= width {
		text += numbers
	}
	bar := width - columns(text) - 2
	if bar < leastBar {
		return Line{{text, Strong}}
	}
	bad := cells(failed, total, bar)
	good := min(cells(done, total, bar), bar-bad)
	g := s.glyphs()
	return Line{
		{" ", Plain},
		{strings.Repeat(g.done, good), Good},
		{strings.Repeat(g.failed, bad), Bad},
		{strings.Repeat(g.left, bar-good-bad), Faint},
		{text, Strong},
	}
}

// cells is the part of a bar that n of total rows take: at least one if there is any.
func cells(n, total int64, width int) int {
	if n <= 0 {
		return 0
	}
	share := min(float64(n)/float64(total), 1)
	return min(max(int(share*float64(width)), 1), width)
}

func about(estimated bool, g *glyphs) string {
	if estimated {
		return g.about
	}
	return ""
}

// timeLeft says when the job will be over.
func (s *State) timeLeft(estimated bool) string {
	eta := s.Overview.ETA()
	switch {
	case eta == 0:
		return about(estimated, s.glyphs()) + "finished"
	case s.Overview.PausedBy != "":
		return "paused"
	case eta < 0:
		return ""
	}
	return about(estimated, s.glyphs()) + brief(eta.Round(time.Second)) + " left"
}

// rates are the lines that tell how fast the job goes.
func (s *State) rates(width, height int) []Line {
	now := s.Rates.Now()
	if now < 0 {
		now = s.Overview.Rate
	}
	text := Line{{" " + perSecond(now), Strong}, {" rows/s", Plain}}
	if height < airy-4 {
		room := width - text.columns() - 3
		return []Line{append(text, append(Line{{"  ", Plain}}, s.spark(room, 1)[0]...)...)}
	}
	text = append(text, Span{", " + perSecond(s.Overview.Rate) + " over the last minute", Plain})
	legend := fmt.Sprintf("last %s, peak %s/s ", brief(keptRates*time.Second), perSecond(peak(s.Rates.Bars(width-2))))
	lines := []Line{apart(text, Line{{legend, Faint}}, width, Plain)}
	high := 1 + min(max(height-airy-4, 0)/8, 2)
	for _, line := range s.spark(width-2, high) {
		lines = append(lines, append(Line{{" ", Plain}}, line...))
	}
	return lines
}

func peak(bars []float64) float64 {
	highest := 0.0
	for _, rate := range bars {
		highest = max(highest, rate)
	}
	return highest
}

// spark draws the rates of the last minutes, high lines high.
func (s *State) spark(width, high int) []Line {
	levels := s.glyphs().levels
	bars := s.Rates.Bars(width)
	highest := peak(bars)
	lines := make([]Line, high)
	for i := range lines {
		var b strings.Builder
		for _, rate := range bars {
			b.WriteString(level(rate, highest, levels, high, high-1-i))
		}
		lines[i] = Line{{b.String(), Good}}
	}
	return lines
}

// level is what one line, counted from below, shows of a rate. The lowest level of the
// lowest line is that of no rows; a rate that is not known is blank.
func level(rate, highest float64, levels []string, high, line int) string {
	if rate < 0 || math.IsNaN(rate) {
		return " "
	}
	steps := 0 // above the lowest level
	if rate > 0 {
		steps = max(1, int(math.Round(rate/highest*float64(high*len(levels)-1))))
	}
	steps -= line * len(levels)
	if steps < 0 {
		return " "
	}
	return levels[min(steps, len(levels)-1)]
}

// states are the rows by state.
func (s *State) states(width int) []Line {
	var items []Line
	for _, state := range []model.State{model.Fresh, model.Waiting, model.InFlight, model.Expired, model.Done, model.Failed} {
		n := s.Overview.Counts[state]
		style := Plain
		switch {
		case n > 0 && state == model.Failed:
			style = Bad
		case n > 0 && state == model.Expired:
			style = Warn
		}
		name := strings.ReplaceAll(string(state), "_", " ")
		items = append(items, Line{{name + " ", Faint}, {s.count(n, s.Overview.IsEstimate(state)), style}})
	}
	if due := s.Overview.OldestDue; due >= time.Second {
		items = append(items, Line{{"longest due ", Faint}, {brief(due), Plain}})
	}
	return flow(items, width)
}
