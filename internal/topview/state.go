package topview

import (
	"cmp"
	"slices"
	"time"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/errorgroups"
	"github.com/windrow-go/windrow/model"
)

// State is all that the screen shows.
type State struct {
	Name  string    // of the database, fit to be seen
	Clock time.Time // the time now, on this machine
	ASCII bool      // draw with ASCII characters only

	Overview checkout.Overview // the last one that was got
	SeenAt   time.Time         // when it was got; zero: never
	Rates    Rates
	workers  []model.Worker // of the overview, as they are listed

	Trouble      string    // why the last look failed; empty: it didn't
	TroubleSince time.Time // the first of the looks that have failed since

	Errors Errors

	Help     bool
	Question Question
	Note     string    // what came of what was asked for
	NoteAt   time.Time // when that was said
	Scroll   int       // how many workers are above the first one shown
}

// Errors is what is known of the errors.
type Errors struct {
	Groups []errorgroups.Group
	Others errorgroups.Group
	Rows   int64 // that were read
	Cut    bool  // there are more rows, which were not read
	ReadAt time.Time
	// Reading tells that they are being read again.
	Reading bool
	Trouble string // why the last attempt failed; empty: it didn't
}

// Question is what the user is asked before it is done.
type Question uint8

// The questions.
const (
	NoQuestion Question = iota
	AskPause
	AskResume
)

// noteFor is how long a note stands on the screen.
const noteFor = 5 * time.Second

// Saw takes the result of a look at the job in.
func (s *State) Saw(o checkout.Overview, at time.Time) {
	s.Overview, s.SeenAt, s.Trouble = o, at, ""
	s.Rates.Add(o)
	s.workers = slices.Clone(o.Workers)
	slices.SortStableFunc(s.workers, func(a, b model.Worker) int {
		return cmp.Or(
			cmp.Compare(rank(a, o.Now), rank(b, o.Now)),
			cmp.Compare(speed(b, o.Now), speed(a, o.Now)),
			b.SeenAt.Compare(a.SeenAt)*rank(a, o.Now), // live ones report at different times: that is no order
			cmp.Compare(a.Host, b.Host), cmp.Compare(a.PID, b.PID), cmp.Compare(a.Holder, b.Holder))
	})
}

// rank sorts workers by their state: 0 for those at work.
func rank(w model.Worker, now time.Time) int {
	switch w.State(now) {
	case model.WorkerLive, model.WorkerSlowed:
		return 0
	case model.WorkerGone:
		return 1
	default:
		return 2
	}
}

// speed is a worker's rate; one that is not at work has none.
func speed(w model.Worker, now time.Time) float64 {
	if rank(w, now) > 0 {
		return 0
	}
	return w.Rate
}

// Lost takes a look at the job in that failed. What was seen before stays.
func (s *State) Lost(reason string, at time.Time) {
	if s.Trouble == "" {
		s.TroubleSince = at
	}
	s.Trouble = reason
}

// Say puts a note on the screen, for a while.
func (s *State) Say(note string, at time.Time) { s.Note, s.NoteAt = note, at }

// Key is a key that means something.
type Key uint8

// The keys; KeyOther is any that is not listed.
const (
	KeyOther Key = iota
	KeyQuit
	KeyInterrupt
	KeyPause
	KeyErrors
	KeyHelp
	KeyYes
	KeyUp
	KeyDown
	KeyPageUp
	KeyPageDown
	KeyHome
	KeyEnd
)

// Action is what a key asks for.
type Action uint8

// The actions.
const (
	NoAction Action = iota
	Quit
	Pause
	Resume
	ReadErrors
)

// Press takes a key in, on a screen of that size, and tells what is to be done.
func (s *State) Press(key Key, width, height int) Action {
	s.Note = ""
	switch {
	case key == KeyInterrupt:
		return Quit
	case s.Question != NoQuestion:
		return s.answer(key)
	case s.Help:
		s.Help = false
		return NoAction
	}
	switch key {
	case KeyQuit:
		return Quit
	case KeyHelp:
		s.Help = true
	case KeyPause:
		s.ask()
	case KeyErrors:
		if !s.Errors.Reading {
			return ReadErrors
		}
	default:
		s.scroll(key, width, height)
	}
	return NoAction
}

// ask begins a pause or the end of one.
func (s *State) ask() {
	switch {
	case s.SeenAt.IsZero() || s.Trouble != "":
		s.Say("not now: the database does not answer", s.Clock)
	case s.Overview.PausedBy != "":
		s.Question = AskResume
	default:
		s.Question = AskPause
	}
}

func (s *State) answer(key Key) Action {
	asked := s.Question
	s.Question = NoQuestion
	switch {
	case key != KeyYes:
		s.Say("nothing was done", s.Clock)
		return NoAction
	case asked == AskPause:
		return Pause
	default:
		return Resume
	}
}

func (s *State) scroll(key Key, width, height int) {
	shown := s.layout(width, height).workers
	last := max(0, len(s.workers)-shown)
	at := min(s.Scroll, last)
	switch key {
	case KeyUp:
		at--
	case KeyDown:
		at++
	case KeyPageUp:
		at -= max(shown, 1)
	case KeyPageDown:
		at += max(shown, 1)
	case KeyHome:
		at = 0
	case KeyEnd:
		at = last
	}
	s.Scroll = min(max(at, 0), last)
}
