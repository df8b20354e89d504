package schedule

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// NoLock in [Schedule.Lock] lets runs of a schedule overlap.
const NoLock = "none"

// Missed says what becomes of a due time at which no scheduler could start the run.
type Missed string

const (
	// RunOnce starts one run for all the times that were missed, as soon as
	// possible.
	RunOnce Missed = "run-once"
	// Skip leaves out the times that were missed by more than [MissedAfter].
	Skip Missed = "skip"
)

// MissedAfter is how late a regular run may start and still not count as missed: a
// tick every minute, on a machine that is slow, is no reason to skip one.
const MissedAfter = 2 * time.Minute

// Schedule is a kind of operation: what runs, and when.
type Schedule struct {
	// Name identifies the schedule: letters, digits, and _ . - inside.
	Name string
	// Rule says when regular runs are due.
	Rule Rule
	// At is when the one run of a [Once] rule is due; zero for other rules.
	At time.Time
	// In takes the place of At: so long after the schedule is made, by the database's
	// clock.
	In time.Duration
	// Lock is the lock that one run at a time has. Schedules with the same lock
	// never run at once. Empty: the schedule's own name; [NoLock]: none.
	Lock string
	// Timeout ends runs that take longer; zero means never.
	Timeout time.Duration
	// Missed says what becomes of missed times; empty: [RunOnce].
	Missed Missed
	// Command is a program and its arguments, run without a shell by schedulers
	// that may run commands. Either it or Function is given.
	Command []string
	// Function names a function that schedulers have in [Options.Functions].
	Function string
	// CreatedBy says who made it; user@host, for instance.
	CreatedBy string
}

var plainName = regexp.MustCompile(`^[\pL\pN][\pL\pN_.-]*$`)

// longestName is in bytes. A name has to fit an index.
const longestName = 200

func checkName(what, name string) error {
	if !plainName.MatchString(name) || len(name) > longestName {
		return fmt.Errorf("%s %q: use letters, digits, and _ . - inside, %d bytes at most", what, name, longestName)
	}
	return nil
}

func (s Schedule) withDefaults() Schedule {
	if s.Lock == "" {
		s.Lock = s.Name
	}
	if s.Missed == "" {
		s.Missed = RunOnce
	}
	if s.CreatedBy == "" {
		s.CreatedBy = "unknown"
	}
	return s
}

// Validate tells why a store would refuse the schedule, whatever else it holds.
func (s Schedule) Validate() error { return s.withDefaults().validate() }

// validate checks a schedule whose defaults are filled in.
func (s Schedule) validate() error {
	if err := checkName("the schedule's name", s.Name); err != nil {
		return err
	}
	if err := checkName("lock", s.Lock); err != nil {
		return err
	}
	switch {
	case s.Name == NoLock:
		return fmt.Errorf("a schedule can't be named %q: the name of its lock would mean that there is none", NoLock)
	case s.Rule.text == "":
		return errors.New("the schedule has no rule: say when it runs")
	case s.In < 0:
		return fmt.Errorf("in %s: %w", s.In, ErrPast)
	case s.In > 0 && !s.At.IsZero():
		return errors.New("a run is due either at a time or in a while, not both")
	case (s.Rule.text == once) != (s.In > 0 || !s.At.IsZero()):
		return errors.New("a time is given exactly if the rule is to run once")
	case s.Timeout < 0:
		return fmt.Errorf("timeout %s is negative", s.Timeout)
	case s.Missed != RunOnce && s.Missed != Skip:
		return fmt.Errorf("missed times %q: use %s or %s", s.Missed, RunOnce, Skip)
	case (len(s.Command) > 0) == (s.Function != ""):
		return errors.New("the schedule has to run either a command or a function")
	}
	for _, word := range append([]string{s.Function}, s.Command...) {
		if strings.ContainsRune(word, 0) {
			return errors.New("a command, or a function's name, can't hold a NUL character")
		}
	}
	if len(s.Command) > 0 && s.Command[0] == "" {
		return errors.New("the command's program has no name")
	}
	return nil
}

// lock is the lock's name in the database; nil: none.
func (s Schedule) lock() *string {
	if s.Lock == NoLock {
		return nil
	}
	return &s.Lock
}

// State is where a run stands.
type State string

// The states of a run. From Waiting it goes to Running, Skipped or Cancelled, from
// Running to Done, Failed, Cancelled or Abandoned.
const (
	Waiting   State = "waiting"   // for its due time, or its lock
	Running   State = "running"   // a scheduler is at it
	Done      State = "done"      // it ended well
	Failed    State = "failed"    // it ended with an error, or took too long
	Cancelled State = "cancelled" // somebody cancelled it
	Abandoned State = "abandoned" // its holder was gone, or had lost its lock
	Skipped   State = "skipped"   // its time was missed
)

// Run is one run of a schedule, waiting, running or over. In JSON it is what the
// command line prints.
type Run struct {
	ID       int64  `json:"id"`
	Schedule string `json:"schedule"`
	State    State  `json:"state"`
	// OnDemand tells a run that somebody asked for from a regular one.
	OnDemand   bool       `json:"on_demand"`
	DueAt      time.Time  `json:"due_at"`
	CreatedAt  time.Time  `json:"created_at"`
	CreatedBy  string     `json:"created_by"`
	StartedAt  *time.Time `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at"`
	Holder     string     `json:"holder"`       // the scheduler that ran it
	Lock       string     `json:"lock"`         // empty: none
	Cancelled  string     `json:"cancelled_by"` // who asked for its end
	Abandoned  string     `json:"abandoned_by"` // who found its holder gone
	ExitStatus *int       `json:"exit_status"`  // of a command that ended by itself
	Error      string     `json:"error"`
	Output     string     `json:"output"` // the end of it
}

// Duration is how long the run took; zero if it did not run or is not over.
func (r Run) Duration() time.Duration {
	if r.StartedAt == nil || r.FinishedAt == nil {
		return 0
	}
	return r.FinishedAt.Sub(*r.StartedAt)
}

// Overview is a schedule with its runs of present interest.
type Overview struct {
	Schedule
	CreatedAt time.Time
	PausedAt  *time.Time // nil: it is not paused
	PausedBy  string
	Now       time.Time // by the database's clock
	Next      *Run      // the regular run that waits; its output is left out, as below
	Asked     *Run      // the on-demand run that waits
	Running   *Run      // the run of this schedule that is going on
	Last      *Run      // the latest that is over
	// Occupant is the run that has the schedule's lock, of this schedule or of
	// another with the same lock; nil: the lock is free.
	Occupant *Run
	// Broken is why the rule can't be read, if somebody has written it by hand;
	// empty otherwise.
	Broken string
}

// Coming returns the next n due times of regular runs.
func (o Overview) Coming(n int) []time.Time {
	if o.Next == nil {
		return nil
	}
	return o.Rule.Coming(o.Next.DueAt, o.Now, n)
}
