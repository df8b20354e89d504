package topview

import (
	"strings"
	"unicode"

	"github.com/clipperhouse/displaywidth"

	"github.com/windrow-go/windrow/internal/jsonb"
)

// mostClusterBytes bounds a character with its accents: more is no writing.
const mostClusterBytes = 24

// clean makes a text that anybody may have written fit for one line of the screen:
// valid, of at most about so many bytes, and without anything that moves the cursor,
// changes the direction of the text or has a width on which terminals differ.
func clean(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case unicode.Is(unicode.Variation_Selector, r):
			return -1
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, jsonb.SafeText(s, most))
	var b strings.Builder
	for clusters := displaywidth.StringGraphemes(s); clusters.Next(); {
		cluster := clusters.Value()
		if w := clusters.Width(); w < 1 || w > 2 || len(cluster) > mostClusterBytes {
			cluster = string(unicode.ReplacementChar)
		}
		b.WriteString(cluster)
	}
	return b.String()
}

// columns is how wide a text is on the screen.
func columns(s string) int { return displaywidth.String(s) }

// cutRight shortens a text to a width, at its end.
func cutRight(s string, width int, mark string) string {
	if columns(s) <= width {
		return s
	}
	if width < columns(mark) {
		mark = ""
	}
	return displaywidth.TruncateString(s, max(width, 0), mark)
}

// cutLeft shortens a text to a width, at its beginning.
func cutLeft(s string, width int, mark string) string {
	if columns(s) <= width {
		return s
	}
	if width < columns(mark) {
		mark = ""
	}
	room := width - columns(mark)
	var clusters []string
	for all := displaywidth.StringGraphemes(s); all.Next(); {
		clusters = append(clusters, all.Value())
	}
	first := len(clusters)
	for first > 0 && columns(clusters[first-1]) <= room {
		first--
		room -= columns(clusters[first])
	}
	return mark + strings.Join(clusters[first:], "")
}

// padded fills a text up to a width: on the left if it is a number.
func padded(s string, width int, number bool) string {
	gap := strings.Repeat(" ", max(width-columns(s), 0))
	if number {
		return gap + s
	}
	return s + gap
}

// glyphs are the characters that the view draws with.
type glyphs struct {
	done, failed, left string
	levels             []string // of the rate, the lowest first
	about, more        string   // an estimate; a text goes on
	upDown             string
}

var unicodeGlyphs = glyphs{
	done: "█", failed: "▓", left: "░",
	levels: []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"},
	about:  "≈", more: "…", upDown: "↑↓",
}

// asciiGlyphs are for terminals that have no others, or take others for wide.
var asciiGlyphs = glyphs{
	done: "#", failed: "x", left: ".",
	levels: []string{"_", ".", ":", "-", "=", "+", "*", "#"},
	about:  "~", more: ".", upDown: "Up/Down",
}
