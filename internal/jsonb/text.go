package jsonb

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// SafeText makes s fit for a text column: NUL and invalid UTF-8 become U+FFFD,
// and what is longer than max bytes loses its middle, with a mark that says how
// many bytes were cut. Beginning and end are kept, because an error begins with
// its place and ends with its cause. The result never has more than max bytes;
// if not even the mark finds room, only the beginning is kept.
func SafeText(s string, max int) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	s = strings.ReplaceAll(s, "\x00", "\ufffd")
	if len(s) <= max {
		return s
	}
	room := max - len(cutMark(len(s)))
	if room < 2*utf8.UTFMax {
		return s[:runeBefore(s, max)]
	}
	head := runeBefore(s, (room+1)/2)
	tail := len(s) - room/2
	for !utf8.RuneStart(s[tail]) {
		tail++
	}
	return s[:head] + cutMark(tail-head) + s[tail:]
}

func cutMark(bytes int) string { return fmt.Sprintf(" […%d bytes cut…] ", bytes) }

// runeBefore returns the last rune boundary in s at or before i.
func runeBefore(s string, i int) int {
	i = max(i, 0)
	for i > 0 && !utf8.RuneStart(s[i]) {
		i--
	}
	return i
}
