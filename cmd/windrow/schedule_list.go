package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/windrow-go/windrow/schedule"
)

// coming is how many of a schedule's next times are shown.
const coming = 3

// scheduleReport is the documented shape of a line of schedule list --json.
type scheduleReport struct {
	Name      string          `json:"name"`
	Rule      string          `json:"rule"` // every 15m, cron 0 3 * * *, once
	Timezone  string          `json:"timezone"`
	Lock      string          `json:"lock"` // none: runs may overlap
	Timeout   float64         `json:"timeout_seconds"`
	Missed    schedule.Missed `json:"missed"`
	Command   []string        `json:"command"`  // or
	Function  string          `json:"function"` // of a program that embeds windrow
	CreatedBy string          `json:"created_by"`
	CreatedAt time.Time       `json:"created_at"`
	PausedBy  string          `json:"paused_by"`
	PausedAt  *time.Time      `json:"paused_at"`
	Next      []time.Time     `json:"next"`         // up to three times
	Asked     *schedule.Run   `json:"asked"`        // the on-demand run that waits
	Running   *schedule.Run   `json:"running"`      // without its output, as the next two
	Last      *schedule.Run   `json:"last"`         // the latest that is over
	HeldBy    *schedule.Run   `json:"lock_held_by"` // the run that has the lock, of this schedule or another
	Broken    string          `json:"broken"`       // why the schedule can't be read
}

func reportOf(o schedule.Overview) scheduleReport {
	return scheduleReport{
		Name: o.Name, Rule: o.Rule.String(), Timezone: o.Rule.Zone(), Lock: o.Lock, Timeout: o.Timeout.Seconds(), Missed: o.Missed,
		Command: o.Command, Function: o.Function, CreatedBy: o.CreatedBy, CreatedAt: o.CreatedAt,
		PausedBy: o.PausedBy, PausedAt: o.PausedAt, Next: append([]time.Time{}, o.Coming(coming)...),
		Asked: o.Asked, Running: o.Running, Last: o.Last, HeldBy: o.Occupant, Broken: o.Broken,
	}
}

func (a *app) scheduleListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the schedules: next three times, last result, who holds the lock",
		Example: `  windrow schedule list
  windrow schedule list --json | jq -r 'select(.last.state == "failed") | .name'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.openSchedules(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer s.Close()
			list, err := s.List(cmd.Context())
			if err != nil {
				return err
			}
			return a.printSchedules(list, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, `print a line {"name", "rule", "timezone", "lock", "timeout_seconds", "missed", "command", "function", "created_by", "created_at", "paused_by", "paused_at", "next", "asked", "running", "last", "lock_held_by", "broken"} for each, with runs as in history --json`)
	return cmd
}

func (a *app) printSchedules(list []schedule.Overview, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(a.stdout)
		for _, o := range list {
			if err := encoder.Encode(reportOf(o)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(list) == 0 {
		a.say("there are no schedules")
		return nil
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tRULE\tNEXT\tLAST\tLOCK")
	for _, o := range list {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", o.Name, o.Rule, nextText(o), lastText(o), lockText(o))
	}
	return table.Flush()
}

// nextText tells when a schedule runs next, or why it doesn't.
func nextText(o schedule.Overview) string {
	var text string
	switch {
	case o.Broken != "":
		return "never: " + o.Broken
	case o.PausedAt != nil:
		return "paused by " + o.PausedBy
	case o.Next == nil:
		text = "-"
	default:
		text = timesText(o, coming)
	}
	if o.Asked != nil {
		text = "now (run " + fmt.Sprint(o.Asked.ID) + "), " + text
	}
	return text
}

// timesText is the next n times on the wall of the schedule's zone, the first in full.
func timesText(o schedule.Overview, n int) string {
	zone, err := schedule.LoadZone(o.Rule.Zone())
	if err != nil {
		zone = time.UTC
	}
	var parts []string
	for i, at := range o.Coming(n) {
		layout := "01-02 15:04"
		if i == 0 {
			layout = "2006-01-02 15:04"
		}
		at = at.In(zone).Truncate(time.Second)
		if at.Second() != 0 {
			layout += ":05"
		}
		if i == 0 {
			layout += " MST"
		}
		parts = append(parts, at.Format(layout))
	}
	return strings.Join(parts, ", ")
}

// lastText tells how the latest run has ended.
func lastText(o schedule.Overview) string {
	if o.Last == nil || o.Last.FinishedAt == nil {
		return "-"
	}
	text := resultText(*o.Last) + ", " + humanize.RelTime(*o.Last.FinishedAt, o.Now, "ago", "from now")
	if took := o.Last.Duration(); took > 0 {
		text += ", took " + roundTime(took).String()
	}
	return text
}

// resultText is a run's state with its exit status.
func resultText(r schedule.Run) string {
	if r.ExitStatus != nil && *r.ExitStatus != 0 {
		return fmt.Sprintf("%s (exit status %d)", r.State, *r.ExitStatus)
	}
	return string(r.State)
}

// lockText tells who holds the schedule's lock.
func lockText(o schedule.Overview) string {
	switch {
	case o.Lock == schedule.NoLock && o.Running != nil:
		return fmt.Sprintf("none; run %d on %s", o.Running.ID, o.Running.Holder)
	case o.Lock == schedule.NoLock:
		return "none"
	case o.Occupant == nil && o.Lock != o.Name:
		return o.Lock + ": free"
	case o.Occupant == nil:
		return "free"
	case o.Occupant.Schedule != o.Name:
		return fmt.Sprintf("%s: run %d of %s on %s", o.Lock, o.Occupant.ID, o.Occupant.Schedule, o.Occupant.Holder)
	}
	return fmt.Sprintf("run %d on %s", o.Occupant.ID, o.Occupant.Holder)
}
