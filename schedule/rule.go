package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Rule says when the regular runs of a schedule are due. The zero value is no rule.
type Rule struct {
	every time.Duration
	cron  *cron
	text  string
}

// once is the text of the rule of a schedule that has a single regular run.
const once = "once"

// Once is the rule of a schedule whose one regular run is due at a given time.
func Once() Rule { return Rule{text: once} }

// Every is the rule of runs that are d apart, a second at least. The time is
// counted from due time to due time, whenever a run starts or ends, so that the
// schedule does not drift; it is time that passes, not what a clock on the wall
// shows.
func Every(d time.Duration) (Rule, error) {
	if d < time.Second {
		return Rule{}, fmt.Errorf("an interval of %s: it must be at least 1s", d)
	}
	d = d.Truncate(time.Microsecond)
	return Rule{every: d, text: "every " + shortDuration(d)}, nil
}

// Cron is the rule of a cron expression: minute, hour, day of the month, month, day
// of the week, or @hourly, @daily, @weekly, @monthly, @yearly. The times are those of
// a clock on the wall of zone. Where both days are restricted, either will do.
//
// Where the hour is a *, the rule follows the time that passes: an hourly rule has 23
// times on a day that loses an hour and 25 on one that gains one. Other rules have
// as many times on such days as on any: a time that is skipped is due at the moment
// of the jump, and one that comes twice is due the first time only.
func Cron(expression string, zone *time.Location) (Rule, error) {
	c, err := parseCron(expression, zone)
	if err != nil {
		return Rule{}, err
	}
	return Rule{cron: c, text: "cron " + c.expression}, nil
}

// LoadZone returns the time zone of a name such as Europe/Warsaw; an empty one is UTC.
// The machine's own zone ("Local") is refused: the machines of a fleet may differ.
func LoadZone(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, errors.New(`time zone "Local": name it, such as Europe/Warsaw`)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("time zone %q: %w", name, err)
	}
	return zone, nil
}

// String is the rule's text: "every 15m", "cron 0 3 * * *" or "once".
func (r Rule) String() string { return r.text }

// Zone is the name of the time zone of a cron rule, and UTC for others.
func (r Rule) Zone() string {
	if r.cron == nil {
		return "UTC"
	}
	return r.cron.zone.String()
}

// Next returns the first time after now of a schedule one of whose times is due, and
// the zero time if there is none.
func (r Rule) Next(due, now time.Time) time.Time {
	switch {
	case r.every > 0:
		return nextInterval(due, now, r.every)
	case r.cron != nil:
		return r.cron.next(later(due, now))
	}
	return time.Time{}
}

// Coming returns up to n times of the rule: first, and those that follow it. A first
// time that has passed by now is followed by the first after now.
func (r Rule) Coming(first, now time.Time, n int) []time.Time {
	var times []time.Time
	for at := first; !at.IsZero() && len(times) < n; at = r.Next(at, later(at, now)) {
		times = append(times, at)
	}
	return times
}

// first returns the first due time of a new schedule; that of a single run is given.
func (r Rule) first(now time.Time) time.Time {
	if r.every > 0 {
		return now.Add(r.every)
	}
	return r.Next(now, now)
}

// nextInterval is due plus the fewest intervals that lead beyond both due and now.
func nextInterval(due, now time.Time, every time.Duration) time.Time {
	if now.Before(due) {
		return due.Add(every)
	}
	return due.Add((now.Sub(due)/every + 1) * every)
}

// rules are those that have been read from the database, and zones, by their texts:
// many schedules have the same.
type rules struct {
	read  map[[2]string]Rule
	zones map[string]*time.Location
}

func newRules() *rules {
	return &rules{read: map[[2]string]Rule{}, zones: map[string]*time.Location{}}
}

// rule reads a rule and the name of its zone as they stand in the database.
func (r *rules) rule(text, zoneName string) (Rule, error) {
	key := [2]string{text, zoneName}
	if rule, found := r.read[key]; found {
		return rule, nil
	}
	rule, err := r.parse(text, zoneName)
	if err == nil {
		r.read[key] = rule
	}
	return rule, err
}

func (r *rules) parse(text, zoneName string) (Rule, error) {
	word, rest, _ := strings.Cut(text, " ")
	switch word {
	case once:
		return Once(), nil
	case "every":
		d, err := time.ParseDuration(rest)
		if err != nil {
			return Rule{}, fmt.Errorf("rule %q: %w", text, err)
		}
		return Every(d)
	case "cron":
		zone, found := r.zones[zoneName]
		if !found {
			var err error
			if zone, err = LoadZone(zoneName); err != nil {
				return Rule{}, err
			}
			r.zones[zoneName] = zone
		}
		return Cron(rest, zone)
	}
	return Rule{}, fmt.Errorf("rule %q: it begins with none of every, cron, once", text)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// shortDuration leaves the zeros at the end of a duration's text out: 15m, 24h.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
