package topview

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/windrow-go/windrow/model"
)

// mostCell bounds a text in the workers' table, in columns.
const mostCell = 24

// column is one of the workers' table.
type column struct {
	name   string
	number bool
	rank   int // which columns are left out first where there is no room: the highest
	cell   func(w model.Worker, now time.Time) string
}

var workerColumns = []column{
	{"STATE", false, 0, func(w model.Worker, now time.Time) string { return string(w.State(now)) }},
	{"HOST", false, 1, func(w model.Worker, _ time.Time) string { return orDash(w.Host) }},
	{"PID", true, 6, func(w model.Worker, _ time.Time) string { return strconv.Itoa(w.PID) }},
	{"SINCE", true, 14, func(w model.Worker, now time.Time) string { return shortAge(now.Sub(w.StartedAt)) }},
	{"SEEN", true, 7, func(w model.Worker, now time.Time) string { return shortAge(now.Sub(w.SeenAt)) }},
	{"SLOTS", true, 8, func(w model.Worker, _ time.Time) string { return strconv.Itoa(w.Slots) }},
	{"HOLDS", true, 3, func(w model.Worker, _ time.Time) string { return strconv.Itoa(w.InFlight) }},
	{"ROWS/S", true, 2, func(w model.Worker, now time.Time) string {
		if rank(w, now) > 0 {
			return "-"
		}
		return perSecond(w.Rate)
	}},
	{"DONE", true, 4, func(w model.Worker, _ time.Time) string { return humanize.Comma(w.Done) }},
	{"FAILED", true, 5, func(w model.Worker, _ time.Time) string { return humanize.Comma(w.Failed) }},
	{"RETRIED", true, 9, func(w model.Worker, _ time.Time) string { return humanize.Comma(w.Retried) }},
	{"LOST", true, 10, func(w model.Worker, _ time.Time) string { return humanize.Comma(w.Lost) }},
	{"CONFLICTS", true, 11, func(w model.Worker, _ time.Time) string { return humanize.Comma(w.Conflicts) }},
	{"HANDLER", false, 12, func(w model.Worker, _ time.Time) string { return orDash(w.Version) }},
	{"WINDROW", false, 13, func(w model.Worker, _ time.Time) string { return orDash(w.Program) }},
}

func orDash(text string) string { return cmp.Or(clean(text, 4*mostCell), "-") }

// shortAge is a time in its largest unit.
func shortAge(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// workerSection is the table of workers.
func (s *State) workerSection(l layout, width int) []Line {
	var lines []Line
	if l.gaps {
		lines = append(lines, nil)
	}
	if l.heading {
		lines = append(lines, s.workerHeading(l, width))
	}
	if len(s.workers) == 0 {
		return append(lines, Line{{" no worker has been at work in the last day", Faint}})
	}
	return append(lines, s.workerTable(l, width)...)
}

// workerHeading counts the workers by state.
func (s *State) workerHeading(l layout, width int) Line {
	now := s.Overview.Now
	counts := map[model.WorkerState]int{}
	trouble := ""
	for _, w := range s.workers {
		counts[w.State(now)]++
		if w.State(now) == model.WorkerSlowed && trouble == "" {
			trouble = clean(w.Trouble, mostShown)
		}
	}
	line := Line{{" WORKERS", Strong}}
	separator := "  "
	for _, state := range []model.WorkerState{model.WorkerLive, model.WorkerSlowed, model.WorkerGone, model.WorkerStopped} {
		if n := counts[state]; n > 0 || state == model.WorkerLive {
			line = append(line, Span{fmt.Sprintf("%s%d %s", separator, n, state), stateStyle(state)})
			separator = ", "
		}
		if state == model.WorkerSlowed && trouble != "" {
			line = append(line, Span{": " + s.clip(trouble, max(20, width/2)), Faint})
		}
	}
	first := min(s.Scroll, max(0, len(s.workers)-l.workers))
	if len(s.workers) <= l.workers {
		return line
	}
	part := fmt.Sprintf("%d-%d of %d ", first+1, min(first+l.workers, len(s.workers)), len(s.workers))
	return apart(line, Line{{part, Faint}}, width, Plain)
}

// workerTable is the columns that fit, and the workers that are scrolled to.
func (s *State) workerTable(l layout, width int) []Line {
	table := make([][]string, len(s.workers))
	for i, w := range s.workers {
		table[i] = make([]string, len(workerColumns))
		for j, c := range workerColumns {
			table[i][j] = s.clip(c.cell(w, s.Overview.Now), mostCell)
		}
	}
	widths := make([]int, len(workerColumns))
	for j, c := range workerColumns {
		widths[j] = columns(c.name)
		for _, row := range table {
			widths[j] = max(widths[j], columns(row[j]))
		}
	}
	shown := fitting(widths, width)
	line := func(cell func(j int) string) string {
		var b strings.Builder
		for _, j := range shown {
			b.WriteString(strings.Repeat(" ", 1+min(b.Len(), 1))) // one blank at the edge, else two
			b.WriteString(padded(cell(j), widths[j], workerColumns[j].number))
		}
		return b.String()
	}
	lines := []Line{{{line(func(j int) string { return workerColumns[j].name }), Faint}}}
	first := min(s.Scroll, max(0, len(s.workers)-l.workers))
	for i := first; i < min(first+l.workers, len(s.workers)); i++ {
		state := s.workers[i].State(s.Overview.Now)
		lines = append(lines, Line{{line(func(j int) string { return table[i][j] }), stateStyle(state)}})
	}
	return lines
}

// fitting are the columns for which there is room, the most important ones at any
// rate.
func fitting(widths []int, room int) []int {
	var shown []int
	used := 0
	for j := range widths {
		shown = append(shown, j)
		used += widths[j] + 2
	}
	for used-1 > room && len(shown) > 2 {
		least := slices.MaxFunc(shown, func(a, b int) int { return cmp.Compare(workerColumns[a].rank, workerColumns[b].rank) })
		shown = slices.DeleteFunc(shown, func(j int) bool { return j == least })
		used -= widths[least] + 2
	}
	return shown
}

func stateStyle(state model.WorkerState) Style {
	switch state {
	case model.WorkerSlowed:
		return Warn
	case model.WorkerGone:
		return Bad
	case model.WorkerStopped:
		return Faint
	}
	return Plain
}
