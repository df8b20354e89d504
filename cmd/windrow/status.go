package main

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/model"
)

// statusReport is the documented shape of status --json.
type statusReport struct {
	Total    int64 `json:"total"`
	Fresh    int64 `json:"fresh"`
	Waiting  int64 `json:"waiting"`
	InFlight int64 `json:"in_flight"`
	Expired  int64 `json:"expired"`
	Done     int64 `json:"done"`
	Failed   int64 `json:"failed"`
	// Next is how many seconds until a row is available: 0 now, null never.
	Next *float64 `json:"next_seconds"`
}

func (a *app) statusCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Count the rows by state",
		Long: `Count the rows by state, exactly, in one pass over the table.

  fresh      may be checked out          in_flight  held by a worker
  waiting    for a retry or a due time   expired    held by a worker that is gone
  done       processed, with a result    failed     processed, with an error`,
		Example: `  windrow status
  windrow status --json | jq .failed`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.open(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer s.Close()
			counts, err := s.Counts(cmd.Context())
			if err != nil {
				return err
			}
			agenda, err := s.Agenda(cmd.Context())
			if err != nil {
				return err
			}
			return a.printStatus(counts, agenda, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"total", "fresh", "waiting", "in_flight", "expired", "done", "failed", "next_seconds"}`)
	return cmd
}

func (a *app) printStatus(counts checkout.Counts, agenda model.Agenda, asJSON bool) error {
	if asJSON {
		report := statusReport{
			Total: counts.Total(), Fresh: counts[model.Fresh], Waiting: counts[model.Waiting],
			InFlight: counts[model.InFlight], Expired: counts[model.Expired],
			Done: counts[model.Done], Failed: counts[model.Failed],
		}
		if agenda.Next >= 0 {
			seconds := agenda.Next.Seconds()
			report.Next = &seconds
		}
		return json.NewEncoder(a.stdout).Encode(report)
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(name string, n int64) { fmt.Fprintf(table, "%s\t%s\t\n", name, humanize.Comma(n)) }
	line("total", counts.Total())
	for _, state := range []model.State{model.Fresh, model.Waiting, model.InFlight, model.Expired, model.Done, model.Failed} {
		line(string(state), counts[state])
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if counts[model.Fresh] == 0 && agenda.Next > 0 {
		fmt.Fprintf(a.stdout, "the next row is available in %s\n", agenda.Next.Round(time.Second))
	}
	return nil
}
