package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/model"
)

func (a *app) cancelCommand() *cobra.Command {
	var id int64
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "cancel KEY | cancel --id N",
		Short: "End a row that waits, before anybody works it",
		Long: `End a row that waits for its time or for another try, or that no worker has taken
yet: it is processed then, with the error "cancelled", and windrow reprocess can put
it back like any failed row. A row that a worker holds can't be cancelled, nor one
that is processed: exit code 1, and it is left as it is. One that was cancelled before
is said to be so, exit code 0.`,
		Example: `  windrow add '{"to": "ann@example.org"}' --key mail-17 --in 90m
  windrow cancel mail-17`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			byID := cmd.Flags().Changed("id")
			if byID == (len(args) == 1) {
				return usagef("cancel which row? Give its key, or --id N")
			}
			s, err := a.open(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer s.Close()
			what := fmt.Sprintf("id %d", id)
			if !byID {
				what = fmt.Sprintf("key %q", args[0])
			}
			var row model.Dataset
			var now time.Time
			if byID {
				row, now, err = s.ByID(cmd.Context(), id)
			} else {
				row, now, err = s.ByKey(cmd.Context(), args[0])
			}
			if errors.Is(err, checkout.ErrNotFound) {
				return fmt.Errorf("there is no row with %s", what)
			}
			if err != nil {
				return err
			}
			return a.cancelRow(cmd.Context(), s, row, now, asJSON)
		},
	}
	cmd.Flags().Int64Var(&id, "id", 0, "the row's id instead of its key")
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"id", "key", "cancelled"}; the last is false if it was cancelled before`)
	withoutEnvironment(cmd.Flags(), "id")
	return cmd
}

// cancelRow cancels a row that was as it is here a moment ago.
func (a *app) cancelRow(ctx context.Context, s store, row model.Dataset, now time.Time, asJSON bool) error {
	err := s.Cancel(ctx, row.ID)
	cancelled := err == nil
	switch {
	case errors.Is(err, checkout.ErrHeld):
		return fmt.Errorf("row %d was not cancelled: a worker has it, or had it when it died; windrow show --id %d tells", row.ID, row.ID)
	case errors.Is(err, checkout.ErrProcessed):
		if row, now, err = s.ByID(ctx, row.ID); err != nil {
			return err
		}
		if row.Error == nil || *row.Error != checkout.Cancelled {
			return fmt.Errorf("row %d was not cancelled: it is %s already", row.ID, row.State(now))
		}
		a.say("row %d was cancelled before", row.ID)
	case err != nil:
		return err
	case row.AvailableAt.After(now):
		a.say("row %d is cancelled; it would have been due at %s UTC", row.ID, row.AvailableAt.UTC().Format("2006-01-02 15:04:05"))
	default:
		a.say("row %d is cancelled", row.ID)
	}
	if !asJSON {
		return nil
	}
	return json.NewEncoder(a.stdout).Encode(struct {
		ID        int64   `json:"id"`
		Key       *string `json:"key"`
		Cancelled bool    `json:"cancelled"`
	}{row.ID, row.Key, cancelled})
}
