package topview

import (
	"fmt"
	"math"
	"time"

	"github.com/dustin/go-humanize"
)

// count is a number of rows, marked if it is an estimate.
func (s *State) count(n int64, estimated bool) string {
	if estimated {
		return s.glyphs().about + humanize.Comma(n)
	}
	return humanize.Comma(n)
}

// perSecond is a rate, with a digit after the point where that says something.
func perSecond(rate float64) string {
	switch {
	case math.IsNaN(rate), rate < 0, rate > math.MaxInt64/2:
		return "?"
	case rate > 0 && rate < 100:
		return fmt.Sprintf("%.1f", rate)
	}
	return humanize.Comma(int64(math.Round(rate)))
}

// brief is a time in its two largest units.
func brief(d time.Duration) string {
	const day = 24 * time.Hour
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return twoUnits(d, time.Minute, "min", time.Second, "s")
	case d < day:
		return twoUnits(d, time.Hour, "h", time.Minute, "min")
	case d < 1000*day:
		return twoUnits(d, day, "d", time.Hour, "h")
	}
	return "over 1000 d"
}

// twoUnits leaves the smaller unit out if there is none of it.
func twoUnits(d, large time.Duration, largeName string, small time.Duration, smallName string) string {
	text := fmt.Sprintf("%d %s", d/large, largeName)
	if rest := d % large / small; rest > 0 {
		text += fmt.Sprintf(" %d %s", rest, smallName)
	}
	return text
}
