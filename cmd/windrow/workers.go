package main

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/windrow-go/windrow/internal/jsonb"
	"github.com/windrow-go/windrow/model"
)

// workerLine is the documented shape of a line of workers --json.
type workerLine struct {
	model.Worker
	State model.WorkerState `json:"state"`
}

func (a *app) workersCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "workers",
		Short: "List the workers: where they run, what they hold, how fast they are",
		Long: `List the workers of the last day, the latest first. A worker tells of itself every
five seconds while it has work; while it waits for some, about once a minute, on
SQLite once in five.

  live      at work, or waiting for work
  slowed    its handler can't serve just now; the line below says why
  stopped   ended in good order
  gone      not seen when it should have been: killed, cut off, or asleep. What it
            held is back when its leases have run out. After a day it is forgotten.

A line of --json is
  {"state", "holder", "host", "pid", "program" (windrow's version), "version" (the
   handler's), "slots", "lease_seconds", "started_at", "seen_at", "expected_by",
   "stopped_at" (or null), "in_flight", "done", "failed", "retried", "released",
   "lost", "conflicts", "rate" (rows a second over the last minute), "trouble"}`,
		Example: `  windrow workers
  windrow workers --json | jq 'select(.state == "gone") | .host'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.open(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer s.Close()
			workers, now, err := s.Workers(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return a.workerLines(workers, now)
			}
			if len(workers) == 0 {
				a.say("no worker has been at work in the last day")
				return nil
			}
			return a.workerTable(workers, now)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return cmd
}

func (a *app) workerLines(workers []model.Worker, now time.Time) error {
	out := json.NewEncoder(a.stdout)
	out.SetEscapeHTML(false)
	for _, w := range workers {
		if err := out.Encode(workerLine{w, w.State(now)}); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) workerTable(workers []model.Worker, now time.Time) error {
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "STATE\tHOST\tPID\tSINCE\tSEEN\tSLOTS\tHOLDS\tDONE\tFAILED\tRETRIED\tLOST\tCONFLICTS\tROWS/S\tWINDROW\tHANDLER\t")
	for _, w := range workers {
		rate := "-"
		if w.IsThere(now) {
			rate = humanize.CommafWithDigits(w.Rate, 1)
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s ago\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n",
			w.State(now), cell(w.Host), w.PID, w.StartedAt.UTC().Format("01-02 15:04:05Z"), roundTime(max(0, now.Sub(w.SeenAt))),
			w.Slots, w.InFlight, humanize.Comma(w.Done), humanize.Comma(w.Failed), humanize.Comma(w.Retried),
			humanize.Comma(w.Lost), humanize.Comma(w.Conflicts), rate, cell(w.Program), cell(w.Version))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, w := range workers {
		if w.State(now) == model.WorkerSlowed {
			fmt.Fprintf(a.stdout, "slowed down: %s, process %d: %s\n", cell(w.Host), w.PID, jsonb.SafeText(w.Trouble, shownMessage))
		}
	}
	return nil
}

// cell fits a text into a table.
func cell(s string) string {
	if s == "" {
		return "-"
	}
	if isPlain(s) {
		return s
	}
	return fmt.Sprintf("%q", jsonb.SafeText(s, mostShownKey))
}
