package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/jsonb"
)

// runLine is the documented shape of a line of runs --json.
type runLine struct {
	ID          int64             `json:"id"`
	State       checkout.RunState `json:"state"`
	Selection   string            `json:"selection"`
	By          string            `json:"by"`
	CreatedAt   time.Time         `json:"created_at"`
	FinishedAt  *time.Time        `json:"finished_at"`
	PutBack     int64             `json:"put_back"`
	Deferred    int64             `json:"deferred"`
	Left        *int64            `json:"left"`
	Restored    int64             `json:"restored"`
	KeepHistory bool              `json:"keep_history"`
}

func (a *app) runsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List the runs: what was put back, by whom, and how much of it is left",
		Long: `List the runs of reprocess, the latest first.

  STATE      running: rows are being put back; cut_off: they were, and the same
             command goes on with it; done: all have been put back; cancelled
  PUT BACK   rows that may be checked out again
  DEFERRED   rows that a worker held: they are worked again after its check-in
  LEFT       rows that are still to be worked; ? if these are too many to be
             counted in a moment
  RESTORED   rows that a cancel has put back as they were

A line of --json is
  {"id", "state", "selection", "by", "created_at", "finished_at" (or null),
   "put_back", "deferred", "left" (or null), "restored", "keep_history"}`,
		Example: `  windrow runs
  windrow runs cancel 3`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.open(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer s.Close()
			runs, err := s.Runs(cmd.Context())
			if err != nil {
				return err
			}
			return a.printRuns(runs, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	cmd.AddCommand(a.cancelRunCommand())
	return cmd
}

func (a *app) printRuns(runs []checkout.Run, asJSON bool) error {
	if asJSON {
		out := json.NewEncoder(a.stdout)
		out.SetEscapeHTML(false)
		for _, r := range runs {
			if err := out.Encode(runLineOf(r)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(runs) == 0 {
		a.say("nothing has been put back yet")
		return nil
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "RUN\tSTATE\tSINCE\tPUT BACK\tDEFERRED\tLEFT\tRESTORED\tHISTORY\tBY\t  SELECTION")
	for _, r := range runs {
		left, history := "?", "-"
		if r.Left != nil {
			left = humanize.Comma(*r.Left)
		}
		if r.KeepHistory {
			history = "kept"
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t  %s\n", r.ID, r.State, r.CreatedAt.UTC().Format(time.RFC3339),
			humanize.Comma(r.PutBack), humanize.Comma(r.Deferred), left, humanize.Comma(r.Restored), history,
			cell(r.CreatedBy), jsonb.SafeText(r.Selection, shownMessage))
	}
	return table.Flush()
}

func runLineOf(r checkout.Run) runLine {
	return runLine{ID: r.ID, State: r.State, Selection: r.Selection, By: r.CreatedBy, CreatedAt: r.CreatedAt.UTC(), FinishedAt: r.FinishedAt,
		PutBack: r.PutBack, Deferred: r.Deferred, Left: r.Left, Restored: r.Restored, KeepHistory: r.KeepHistory}
}

func (a *app) cancelRunCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cancel RUN",
		Short: "Stop a run, and put back as they were the rows that have not been worked",
		Long: `Stop a run: no more of its rows are put back, and those that were, and that nobody
has worked since, become processed again with the outcomes that they had. Rows that
a worker holds just now, or takes before the cancel gets to them, are worked. Cut
off, the same command goes on.`,
		Example: `  windrow runs
  windrow runs cancel 3`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return usagef("%q is no number of a run; windrow runs lists them", args[0])
			}
			s, err := a.open(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer s.Close()
			var restored atomic.Int64
			bar := a.display.Begin("restored", 0, func() (int64, int64) { return restored.Load(), 0 })
			run, err := s.CancelRun(cmd.Context(), id, func(r checkout.Run) error {
				restored.Store(r.Restored)
				return cmd.Context().Err()
			})
			bar.End()
			if errors.Is(err, checkout.ErrNotFound) {
				return fmt.Errorf("there is no run %d; windrow runs lists them", id)
			}
			if err != nil {
				return err
			}
			a.say("run %d cancelled: %s put back as %s before", id, plural(run.Restored, "row"), map[bool]string{true: "it was", false: "they were"}[run.Restored == 1])
			return nil
		},
	}
	return cmd
}
