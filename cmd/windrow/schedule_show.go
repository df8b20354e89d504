package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/windrow-go/windrow/schedule"
)

func (a *app) scheduleShowCommand() *cobra.Command {
	var run int64
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show NAME | --run ID",
		Short: "Show a schedule, or a run with its output",
		Example: `  windrow schedule show nightly
  windrow schedule show --run 17`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (run != 0) {
				return usagef("show what? Name a schedule, or a run with --run")
			}
			s, err := a.openSchedules(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer s.Close()
			if run != 0 {
				return a.showRun(cmd.Context(), s, run, asJSON)
			}
			return a.showSchedule(cmd.Context(), s, args[0], asJSON)
		},
	}
	cmd.Flags().Int64Var(&run, "run", 0, "the run with this `id`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the schedule as list --json does, or the run as history --json does")
	withoutEnvironment(cmd.Flags(), "run")
	return cmd
}

func (a *app) showSchedule(ctx context.Context, s schedule.Store, name string, asJSON bool) error {
	o, err := s.Get(ctx, name)
	if err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(a.stdout).Encode(reportOf(o))
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	line := func(name, value string) { fmt.Fprintf(table, "%s\t%s\n", name, value) }
	line("name", o.Name)
	line("rule", o.Rule.String())
	line("timezone", o.Rule.Zone())
	if len(o.Command) > 0 {
		line("command", commandLine(o.Command))
	} else {
		line("function", o.Function)
	}
	line("missed times", string(o.Missed))
	line("timeout", orNone(o.Timeout))
	line("lock", o.Lock)
	line("lock held by", lockText(o))
	line("next", nextText(o))
	line("last", lastText(o))
	line("created", shortTime(&o.CreatedAt)+" by "+o.CreatedBy)
	if err := table.Flush(); err != nil {
		return err
	}
	if o.Last == nil {
		return nil
	}
	fmt.Fprintln(a.stdout)
	return a.showRun(ctx, s, o.Last.ID, false)
}

func (a *app) showRun(ctx context.Context, s schedule.Store, id int64, asJSON bool) error {
	r, err := s.Run(ctx, id)
	if err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(a.stdout).Encode(r)
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(table, "%s\t%s\n", name, value)
		}
	}
	line("run", fmt.Sprintf("%d of %s, %s", r.ID, r.Schedule, kindText(r)))
	line("state", resultText(r))
	line("due", shortTime(&r.DueAt))
	line("entered", shortTime(&r.CreatedAt)+" by "+r.CreatedBy)
	line("started", shortTime(r.StartedAt))
	line("finished", shortTime(r.FinishedAt))
	line("holder", r.Holder)
	line("cancelled by", r.Cancelled)
	line("abandoned by", r.Abandoned)
	line("error", r.Error)
	if err := table.Flush(); err != nil {
		return err
	}
	if r.Output != "" {
		fmt.Fprintf(a.stdout, "output:\n%s\n", strings.TrimSuffix(r.Output, "\n"))
	}
	return nil
}

// kindText tells regular runs from those that somebody asked for.
func kindText(r schedule.Run) string {
	if r.OnDemand {
		return "on demand"
	}
	return "regular"
}

// shortTime is a time in UTC to the second; nil: nothing.
func shortTime(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.UTC().Format("2006-01-02 15:04:05 MST")
}

func orNone(d time.Duration) string {
	if d == 0 {
		return "none"
	}
	return d.String()
}

// commandLine is a command as one would type it.
func commandLine(command []string) string {
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = quoteArg(word)
	}
	return strings.Join(words, " ")
}
