package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"

	cronlib "github.com/netresearch/go-cron"
)

// cron finds the times of a cron expression. The library reads the expression and
// matches it against a clock that knows no jumps (UTC); what a zone's jumps make of
// its times is decided here. (On its own the library runs a time twice that comes
// twice, and does not know of jumps by other than an hour.)
type cron struct {
	expression string
	zone       *time.Location
	spec       *cronlib.SpecSchedule
	flowing    bool // the hour is a *
}

// anyHour is the mark of a * in a field of the library's.
const anyHour = 1 << 63

// searchYears is how far ahead a time is looked for: 29 February may be eight years
// away.
const searchYears = 9

func parseCron(expression string, zone *time.Location) (*cron, error) {
	expression = strings.Join(strings.Fields(expression), " ")
	wrong := func(err error) error { return fmt.Errorf("cron expression %q: %w", expression, err) }
	switch {
	case strings.HasPrefix(expression, "@every"):
		return nil, wrong(errors.New("an interval is a rule of its own: use every"))
	case strings.Contains(expression, "TZ="):
		return nil, wrong(errors.New("the time zone is given on its own"))
	}
	parser, err := cronlib.TryNewParser(cronlib.Minute | cronlib.Hour | cronlib.Dom | cronlib.Month |
		cronlib.Dow | cronlib.Descriptor | cronlib.DowOrDom)
	if err != nil {
		return nil, wrong(err)
	}
	parsed, err := parser.WithMaxSearchYears(searchYears).Parse(expression)
	if err != nil {
		return nil, wrong(err)
	}
	spec, ok := parsed.(*cronlib.SpecSchedule)
	if !ok {
		return nil, wrong(errors.New("it has no minute, hour and day"))
	}
	spec.Location = time.UTC
	c := &cron{expression: expression, zone: zone, spec: spec, flowing: spec.Hour&anyHour != 0}
	if c.next(time.Now()).IsZero() {
		return nil, wrong(errors.New("no day is like that"))
	}
	return c, nil
}

// next returns the first time after an instant, or the zero time. It goes from one
// period without a jump to the next.
func (c *cron) next(after time.Time) time.Time {
	t := after.In(c.zone)
	_, offset := t.Zone()
	from := onWall(t, offset) // the time looked for is later on the wall
	for range 4 * searchYears {
		begin, end := t.ZoneBounds()
		if !c.flowing && !begin.IsZero() {
			from = later(from, repeatedUntil(begin))
		}
		found := c.spec.Next(from)
		if found.IsZero() {
			return time.Time{}
		}
		at := found.Add(-time.Duration(offset) * time.Second)
		if end.IsZero() || at.Before(end) {
			return at.UTC()
		}
		_, ahead := end.Zone()
		if !c.flowing && c.skipped(onWall(end, offset), onWall(end, ahead)) {
			return end.UTC()
		}
		t, offset, from = end, ahead, onWall(end, ahead).Add(-time.Second)
	}
	return time.Time{}
}

// skipped tells whether a time of the expression lies between what the wall shows
// before a jump and what it shows after it.
func (c *cron) skipped(before, after time.Time) bool {
	found := c.spec.Next(before.Add(-time.Second))
	return !found.IsZero() && found.Before(after)
}

// repeatedUntil is the last second on the wall that was shown before the jump at
// begin.
func repeatedUntil(begin time.Time) time.Time {
	_, before := begin.Add(-1).Zone()
	return onWall(begin, before).Add(-time.Second)
}

// onWall is what a clock with this offset, in seconds, shows at t, as if it were UTC.
func onWall(t time.Time, offset int) time.Time {
	return t.UTC().Add(time.Duration(offset) * time.Second)
}
