package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const (
	// patience bounds a check that has no timeout of its own.
	patience = 2 * time.Second
	// longest bounds them all together: with a server that answers nothing in time it
	// would take a minute otherwise.
	longest = 20 * time.Second
)

// check is one look at a subject.
type check[S any] struct {
	name string
	look func(ctx context.Context, subject S) ([]Finding, error)
	// timeout, if not zero, is used in place of patience.
	timeout time.Duration
	// applies, if not nil, tells whether there is anything to look at.
	applies func(subject S) bool
}

// examine makes the checks one after the other. What keeps one from being made is a
// finding, worded by unseen, which also tells whether the others are in vain.
func examine[S any](ctx context.Context, subject S, checks []check[S], unseen func(S, error) (f Finding, over bool)) []Finding {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	var all []Finding
	var left []string
	over := false
	for _, c := range checks {
		switch {
		case c.applies != nil && !c.applies(subject):
			continue
		case over || ctx.Err() != nil:
			left = append(left, c.name)
			continue
		}
		findings, err := c.in(ctx, subject)
		if err != nil && ctx.Err() == nil {
			var f Finding
			f, over = unseen(subject, err)
			findings = append(findings, f)
		}
		for i := range findings {
			findings[i].Check = c.name
		}
		all = append(all, findings...)
	}
	if len(left) > 0 {
		all = append(all, Finding{Severity: Note, Check: "doctor",
			What: "there was no time, or no connection, left to look at: " + strings.Join(left, ", "),
			Why:  "what is wrong there is not known",
			Cure: "# mend the findings above, then ask again"})
	}
	return sorted(all)
}

func (c check[S]) in(ctx context.Context, subject S) ([]Finding, error) {
	timeout := c.timeout
	if timeout == 0 {
		timeout = patience
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return c.look(ctx, subject)
}

// spell is a duration for people: 350 ms, 12 s, 5 min, 3 h, 4 days.
func spell(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.0f h", d.Hours())
	default:
		return fmt.Sprintf("%.0f days", d.Hours()/24)
	}
}

// count is a number with its noun: 1 row, 1,234 rows.
func count(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return comma(n) + " " + one + "s"
}
