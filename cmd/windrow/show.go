package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/model"
)

func (a *app) showCommand() *cobra.Command {
	var id int64
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show KEY | show --id N",
		Short: "Show one row: its data, state, result, errors, and its history if that is kept",
		Example: `  windrow show SFO
  windrow show --id 17 --json | jq .result`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			byID := cmd.Flags().Changed("id")
			if byID == (len(args) == 1) {
				return usagef("show which row? Give its key, or --id N")
			}
			s, err := a.open(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer s.Close()
			var row model.Dataset
			var now time.Time
			var what string
			if byID {
				what = fmt.Sprintf("id %d", id)
				row, now, err = s.ByID(cmd.Context(), id)
			} else {
				what = fmt.Sprintf("key %q", args[0])
				row, now, err = s.ByKey(cmd.Context(), args[0])
			}
			if errors.Is(err, checkout.ErrNotFound) {
				return fmt.Errorf("there is no row with %s", what)
			}
			if err != nil {
				return err
			}
			history, err := s.History(cmd.Context(), row.ID)
			if err != nil {
				return err
			}
			return a.printRow(row, now, history, asJSON)
		},
	}
	cmd.Flags().Int64Var(&id, "id", 0, "the row's id instead of its key")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the row as one JSON object: its columns as fields, its state, and its former outcomes in history, if some were kept")
	withoutEnvironment(cmd.Flags(), "id")
	return cmd
}

func (a *app) printRow(row model.Dataset, now time.Time, history []checkout.Former, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(a.stdout).Encode(struct {
			State model.State `json:"state"`
			model.Dataset
			History []checkout.Former `json:"history,omitempty"`
		}{row.State(now), row, history})
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	line := func(name string, value any) { fmt.Fprintf(table, "%s\t%v\n", name, value) }
	line("id", row.ID)
	text := func(name string, value *string) {
		if value != nil {
			line(name, *value)
		}
	}
	text("key", row.Key)
	line("state", row.State(now))
	line("attempts", fmt.Sprintf("%d in round %d (checked out %d times in all, lost with its worker %d times)",
		row.Attempts, row.Round, row.Checkouts, row.Losses))
	if !row.IsProcessed && row.AvailableAt.After(now) {
		line("available", "in "+row.AvailableAt.Sub(now).Round(time.Second).String())
	}
	if !row.LastCheckout.Equal(model.Sentinel) {
		line("last checkout", row.LastCheckout.UTC().Format(time.RFC3339))
	}
	text("holder", row.CheckedOutBy)
	if row.ProcessedAt != nil {
		line("processed", row.ProcessedAt.UTC().Format(time.RFC3339))
	}
	text("version", row.Version)
	text("error", row.Error)
	text("last error", row.LastError)
	line("data", string(row.Data))
	if row.Result != nil {
		line("result", string(row.Result))
	}
	for _, former := range history {
		line(fmt.Sprintf("round %d", former.Round), formerText(former))
	}
	return table.Flush()
}

// formerText is an outcome that was replaced, or will be.
func formerText(f checkout.Former) string {
	text := string(f.Result)
	if f.Error != nil {
		text = "failed: " + *f.Error
	}
	if f.ProcessedAt != nil {
		text = f.ProcessedAt.UTC().Format(time.RFC3339) + "  " + text
	}
	return fmt.Sprintf("%s  (put back by run %d)", text, f.RunID)
}
