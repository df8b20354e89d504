package topview

import (
	"fmt"

	"github.com/dustin/go-humanize"

	"github.com/windrow-go/windrow/internal/errorgroups"
)

// otherMessages stands for the messages of the rows that are in no group.
const otherMessages = "other messages"

// lines is how many lines the errors take if there is room.
func (e *Errors) lines() int {
	if e.Others.Count > 0 {
		return len(e.Groups) + 1
	}
	return len(e.Groups)
}

// errorSection is the commonest errors.
func (s *State) errorSection(l layout, width int) []Line {
	var lines []Line
	if l.gaps {
		lines = append(lines, nil)
	}
	if !l.bare {
		lines = append(lines, Line{{" ERRORS", Strong}, {"  " + s.errorsRemark(), Faint}})
	}
	var counts []string
	var shown []errorgroups.Group
	most := 0
	for i := range min(l.errors, s.Errors.lines()) {
		group := s.Errors.Others
		group.Message = otherMessages
		if i < len(s.Errors.Groups) {
			group = s.Errors.Groups[i]
		}
		n := humanize.Comma(group.Count)
		if group.AtLeast {
			n += "+"
		}
		most = max(most, columns(n))
		counts, shown = append(counts, n), append(shown, group)
	}
	for i, group := range shown {
		text := s.clip(firstLine(group.Message), width-most-3)
		lines = append(lines, Line{{" " + padded(counts[i], most, true), Bad}, {"  " + text, Plain}})
	}
	return lines
}

// errorsRemark tells of what the errors are.
func (s *State) errorsRemark() string {
	e := &s.Errors
	switch {
	case e.Trouble != "" && s.Trouble != "":
		return "not read just now" // the reason is told already
	case e.Trouble != "":
		return "not read: " + clean(e.Trouble, mostShown)
	case e.ReadAt.IsZero():
		return "being read" + s.glyphs().more
	}
	age := brief(s.Clock.Sub(e.ReadAt)) + " ago"
	if e.Reading {
		age = "being read again" + s.glyphs().more
	}
	switch {
	case e.Rows == 0:
		return "none (" + age + ")"
	case e.Cut:
		return fmt.Sprintf("of the first %s rows (%s)", humanize.Comma(e.Rows), age)
	case e.Rows == 1:
		return fmt.Sprintf("of 1 row (%s)", age)
	}
	return fmt.Sprintf("of %s rows, failed or waiting (%s)", humanize.Comma(e.Rows), age)
}
