package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/windrow-go/windrow/schedule"
)

func (a *app) scheduleHistoryCommand() *cobra.Command {
	var limit int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "history NAME",
		Short: "List the runs of a schedule that are over, the latest first",
		Example: `  windrow schedule history nightly
  windrow schedule history nightly --json | jq -r 'select(.state == "failed") | .output'`,
		RunE: a.withSchedule(func(ctx context.Context, s schedule.Store, name string) error {
			if limit < 1 {
				return usagef("--limit %d: must be at least 1", limit)
			}
			runs, err := s.History(ctx, name, limit)
			if err != nil {
				return err
			}
			return a.printHistory(runs, asJSON)
		}),
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", 20, "the largest number of runs")
	cmd.Flags().BoolVar(&asJSON, "json", false, `print a line {"id", "schedule", "state", "on_demand", "due_at", "created_at", "created_by", "started_at", "finished_at", "holder", "lock", "cancelled_by", "abandoned_by", "exit_status", "error", "output"} for each`)
	withoutEnvironment(cmd.Flags(), "limit")
	return cmd
}

func (a *app) printHistory(runs []schedule.Run, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(a.stdout)
		for _, r := range runs {
			if err := encoder.Encode(r); err != nil {
				return err
			}
		}
		return nil
	}
	if len(runs) == 0 {
		a.say("there were no runs yet")
		return nil
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RUN\tKIND\tDUE\tSTARTED\tTOOK\tRESULT\tERROR")
	for _, r := range runs {
		took := ""
		if d := r.Duration(); d > 0 {
			took = roundTime(d).String()
		}
		why, _, _ := strings.Cut(r.Error, "\n")
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, kindText(r), shortTime(&r.DueAt), shortTime(r.StartedAt), took, r.State, why)
	}
	return table.Flush()
}
