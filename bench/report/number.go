package report

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
)

// median of no values is NaN.
func median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// significant writes v with so many significant digits, but never rounds away
// digits before the point: 12,346 and 1.20 for three. Whole numbers stay whole.
func significant(v float64, digits int) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	if math.Abs(v) < 1e-6 {
		return strconv.FormatFloat(v, 'g', digits, 64)
	}
	// What rounds up to 10 has one digit more before the point than its logarithm says.
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'e', digits-1, 64), 64)
	decimals := digits - 1 - int(math.Floor(math.Log10(math.Abs(rounded))))
	if decimals <= 0 || v == math.Trunc(v) {
		return humanize.Comma(int64(math.Round(v)))
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// plain is for most values.
func plain(v float64) string { return significant(v, 3) }

// percent writes a share: 0.0013 is 0.13 %.
func percent(share float64) string { return significant(share*100, 2) + " %" }

// whole writes a count.
func whole[T int | int64](n T) string { return humanize.Comma(int64(n)) }

// plural writes a count with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "s") {
		return whole(n) + " " + noun + "es"
	}
	return whole(n) + " " + noun + "s"
}

// spread writes the median with the lowest and the highest value, if they differ.
func spread(values []float64, format func(float64) string) string {
	text := format(median(values))
	low, high := format(slices.Min(values)), format(slices.Max(values))
	if low == high {
		return text
	}
	return text + " (" + low + "–" + high + ")"
}
