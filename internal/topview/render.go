package topview

import (
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/windrow-go/windrow/internal/jsonb"
)

const (
	// airy is from how many lines on there is room for blank ones.
	airy = 20
	// mostShown bounds a text before it is cut to the width, in bytes.
	mostShown = 2000
	// staleAfter is how old an overview may become before that is said.
	staleAfter = 3 * time.Second
)

// layout is how the lines of the screen are shared out.
type layout struct {
	head    []Line // from the title to the states
	gaps    bool   // a blank line stands before each section
	heading bool   // the workers have a heading besides that of their columns
	workers int    // lines for workers; negative: not even the columns' names
	errors  int    // lines for errors; negative: not even the heading
	bare    bool   // the errors have no heading: there is but one line
}

// Frame is what a screen of that size shows.
func (s *State) Frame(width, height int) Frame {
	if width <= 0 || height <= 0 {
		return nil
	}
	var f Frame
	switch {
	case s.Help:
		f = s.help(width)
	default:
		f = s.body(width, height)
	}
	for len(f) < height-1 {
		f = append(f, nil)
	}
	f = append(f[:height-1], s.bottom(width))
	for i, line := range f {
		f[i] = line.within(width, s.glyphs().more)
	}
	return f
}

func (s *State) glyphs() *glyphs {
	if s.ASCII {
		return &asciiGlyphs
	}
	return &unicodeGlyphs
}

func (s *State) body(width, height int) Frame {
	l := s.layout(width, height)
	f := Frame(l.head)
	if l.workers >= 0 {
		f = append(f, s.workerSection(l, width)...)
	}
	if l.errors >= 0 {
		f = append(f, s.errorSection(l, width)...)
	}
	return f
}

// layout shares the lines out: the head takes what it needs, workers and errors half
// each of what is left, or more where the other needs less.
func (s *State) layout(width, height int) layout {
	l := layout{head: s.head(width, height), workers: -1, errors: -1}
	rest := height - len(l.head) - 1
	if s.SeenAt.IsZero() || rest < 2 {
		return l
	}
	switch rest {
	case 2:
		l.workers = 1
		return l
	case 3:
		l.workers, l.errors, l.bare = 1, 1, true
		return l
	}
	rest -= 2 // the columns' names, the errors' heading
	if l.heading = rest > 5; l.heading {
		rest--
	}
	if l.gaps = height >= airy && rest > 6; l.gaps {
		rest -= 2
	}
	wanted, other := max(1, len(s.workers)), max(1, s.Errors.lines())
	l.workers = min(wanted, max(rest-other, (rest+1)/2))
	l.errors = rest - l.workers
	return l
}

// head is everything above the workers.
func (s *State) head(width, height int) []Line {
	lines := []Line{s.title(width)}
	if s.SeenAt.IsZero() {
		if s.Trouble == "" {
			return append(lines, Line{{" looking at the job" + s.glyphs().more, Plain}})
		}
		return append(lines, s.troubleLine(width))
	}
	if by := s.Overview.PausedBy; by != "" {
		text := fmt.Sprintf(" PAUSED by %s: nothing is checked out; p resumes", clean(by, mostShown))
		lines = append(lines, Line{{padded(text, width, false), Warn}})
	}
	if s.Trouble != "" {
		lines = append(lines, s.troubleLine(width))
	}
	gap := func() {
		if height >= airy {
			lines = append(lines, nil)
		}
	}
	gap()
	lines = append(lines, s.progress(width))
	lines = append(lines, s.rates(width, height)...)
	gap()
	return append(lines, s.states(width)...)
}

func (s *State) title(width int) Line {
	clock := " " + s.Clock.Format("15:04:05") + " "
	const what = " windrow top  "
	name := cutLeft(s.Name, width-columns(what)-columns(clock)-1, s.glyphs().more)
	return apart(Line{{what + name, Title}}, Line{{clock, Title}}, width, Title)
}

// troubleLine says that the database does not answer, and since when.
func (s *State) troubleLine(width int) Line {
	text := fmt.Sprintf(" no answer since %s (%s): %s", s.TroubleSince.Format("15:04:05"),
		brief(s.Clock.Sub(s.TroubleSince)), clean(s.Trouble, mostShown))
	return Line{{padded(text, width, false), Alarm}}
}

// bottom is the line for keys, questions and notes.
func (s *State) bottom(width int) Line {
	switch {
	case s.Question == AskPause:
		return Line{{" Pause the job: no worker checks out any more? [y/N]", Warn}}
	case s.Question == AskResume:
		return Line{{" Resume the job: workers check out again? [y/N]", Warn}}
	case s.Note != "" && s.Clock.Sub(s.NoteAt) < noteFor:
		return Line{{" " + clean(s.Note, mostShown), Strong}}
	case s.Help:
		return Line{{" any key: back", Faint}}
	}
	pause := "pause"
	if s.Overview.PausedBy != "" {
		pause = "resume"
	}
	keys := [][2]string{{"q", "quit"}, {"p", pause}, {"e", "errors"}, {"?", "help"}, {s.glyphs().upDown, "workers"}}
	var line Line
	for _, key := range keys {
		if line.columns()+columns(key[0]+key[1])+3 > width {
			break
		}
		line = append(line, Span{" " + key[0], Strong}, Span{" " + key[1] + " ", Faint})
	}
	if age := s.Clock.Sub(s.SeenAt); !s.SeenAt.IsZero() && s.Trouble == "" && age > staleAfter {
		return apart(line, Line{{"as of " + brief(age) + " ago ", Warn}}, width, Plain)
	}
	return line
}

// help explains the keys and what is on the screen.
func (s *State) help(width int) Frame {
	f := Frame{s.title(width)}
	for _, row := range [][2]string{
		{"q, Ctrl-C", "quit"},
		{"p", "pause the job, or resume it; asks first"},
		{"e", "read the errors again now"},
		{"arrows", "scroll the workers (also j, k)"},
		{"PgUp PgDn", "by a page; Home, End: first, last"},
		{"Ctrl-L", "draw the screen anew"},
		{"", ""},
		{s.glyphs().about, "an estimate, as in windrow status"},
		{"rate", fmt.Sprintf("of the last %d s; the bars: the last %s", nowSeconds, brief(keptRates*time.Second))},
		{"errors", fmt.Sprintf("read every %s, at most %s rows", brief(errorsEvery), humanize.Comma(mostErrors))},
		{"slowed", "its handler can't serve just now"},
		{"gone", "not seen when it should have been"},
	} {
		f = append(f, Line{{" " + padded(row[0], 11, false), Strong}, {row[1], Plain}})
	}
	return f
}

// clip cuts a text that was cleaned to a width.
func (s *State) clip(text string, width int) string { return cutRight(text, width, s.glyphs().more) }

// firstLine is the part of an error that is shown.
func firstLine(text string) string {
	return clean(strings.TrimSpace(jsonb.SafeText(text, mostShown)), mostShown)
}
