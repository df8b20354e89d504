package topview

import "strings"

// Style is how a piece of text is to stand out.
type Style uint8

// The styles.
const (
	Plain  Style = iota
	Faint        // what is there anyway
	Strong       // headings
	Title        // the first line
	Good
	Warn
	Bad
	Alarm // a whole line that must be seen
)

// Span is a piece of a line.
type Span struct {
	Text  string
	Style Style
}

// Line is one line of the screen.
type Line []Span

// Frame is what the screen shows, line by line: never more lines, nor wider ones, than
// the size that it was made for.
type Frame []Line

// String is the frame without its styles.
func (f Frame) String() string {
	var b strings.Builder
	for i, line := range f {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(line.String())
	}
	return b.String()
}

// String is the line without its styles.
func (l Line) String() string {
	var b strings.Builder
	for _, span := range l {
		b.WriteString(span.Text)
	}
	return b.String()
}

func (l Line) columns() int {
	n := 0
	for _, span := range l {
		n += columns(span.Text)
	}
	return n
}

// within cuts the line to a width.
func (l Line) within(width int, mark string) Line {
	var short Line
	for _, span := range l {
		w := columns(span.Text)
		if w > width {
			return append(short, Span{cutRight(span.Text, width, mark), span.Style})
		}
		width -= w
		short = append(short, span)
	}
	return short
}

// apart puts one line at the left and one at the right edge, which is left out where
// there is no room for it.
func apart(left, right Line, width int, style Style) Line {
	gap := width - left.columns() - right.columns()
	if gap < 1 {
		return left
	}
	line := append(left[:len(left):len(left)], Span{strings.Repeat(" ", gap), style})
	return append(line, right...)
}

// flow puts items one after another, two blanks apart, on as many lines as needed.
func flow(items []Line, width int) []Line {
	var lines []Line
	line, used := Line{{" ", Plain}}, 1
	for _, item := range items {
		w := item.columns()
		if used > 1 && used+2+w > width {
			lines = append(lines, line)
			line, used = Line{{" ", Plain}}, 1
		}
		if used > 1 {
			line = append(line, Span{"  ", Plain})
			used += 2
		}
		line = append(line, item...)
		used += w
	}
	return append(lines, line)
}
