package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"text/tabwriter"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/jsonb"
)

// diffReport is the documented shape of diff --json.
type diffReport struct {
	Run     int64                     `json:"run"`
	Counts  map[checkout.Change]int64 `json:"counts"`
	Samples []diffLine                `json:"samples"`
}

type diffLine struct {
	Change    checkout.Change `json:"change"`
	ID        int64           `json:"id"`
	Key       *string         `json:"key,omitempty"`
	OldResult json.RawMessage `json:"old_result,omitempty"`
	OldError  *string         `json:"old_error,omitempty"`
	NewResult json.RawMessage `json:"new_result,omitempty"`
	NewError  *string         `json:"new_error,omitempty"`
}

// changeNames are the changes in words.
var changeNames = map[checkout.Change]string{
	checkout.NowFailing: "now failing", checkout.Changed: "changed", checkout.NowDone: "now done",
	checkout.StillFails: "still failing", checkout.Same: "the same", checkout.Pending: "not worked yet",
}

func (a *app) diffCommand() *cobra.Command {
	var asJSON bool
	var samples int
	cmd := &cobra.Command{
		Use:   "diff RUN",
		Short: "Compare the outcomes before and after a run of reprocess --keep-history",
		Long: `Compare the outcomes that a run has replaced with the new ones.

  the same        the same result            changed         another result
  now failing     it had a result            now done        it had failed
  still failing   it had failed as well      not worked yet

Results are compared as JSON values: the order of keys doesn't matter on PostgreSQL.

--json prints {"run", "counts": {"same", "changed", "now_failing", "now_done",
"still_fails", "pending"}, "samples": [{"change", "id", "key"?, "old_result"?,
"old_error"?, "new_result"?, "new_error"?}]}.`,
		Example: `  windrow reprocess --version-not v7 --sample 100 --keep-history --jq '.a + .b'
  windrow diff 3
  windrow diff 3 --samples 20 --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			run, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return usagef("%q is no number of a run; windrow runs lists them", args[0])
			}
			if samples < 0 {
				return usagef("--samples %d: must not be negative", samples)
			}
			s, err := a.open(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer s.Close()
			diff, err := s.Diff(cmd.Context(), run, samples)
			if err != nil {
				return err
			}
			return a.printDiff(run, diff, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().IntVar(&samples, "samples", 5, "name so many rows of each change")
	return cmd
}

func (a *app) printDiff(run int64, diff checkout.Diff, asJSON bool) error {
	if len(diff.Counts) == 0 {
		return fmt.Errorf("run %d has no history: only reprocess --keep-history keeps one; windrow runs lists the runs", run)
	}
	if asJSON {
		report := diffReport{Run: run, Counts: diff.Counts, Samples: []diffLine{}}
		for _, c := range diff.Samples {
			report.Samples = append(report.Samples, diffLine(c))
		}
		out := json.NewEncoder(a.stdout)
		out.SetEscapeHTML(false)
		return out.Encode(report)
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, change := range checkout.Changes {
		if n := diff.Counts[change]; n > 0 {
			fmt.Fprintf(table, "%s\t%s\t\n", changeNames[change], humanize.Comma(n))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, change := range checkout.Changes {
		a.printSamples(diff.Samples, change)
	}
	return nil
}

func (a *app) printSamples(samples []checkout.Comparison, change checkout.Change) {
	title := changeNames[change] + ":\n"
	for _, c := range samples {
		if c.Change == change {
			fmt.Fprintf(a.stdout, "%s  %s\n    before  %s\n    after   %s\n", title, a.again("show "+sampleOf(checkout.Failure{ID: c.ID, Key: c.Key})),
				outcomeText(c.OldResult, c.OldError), outcomeText(c.NewResult, c.NewError))
			title = ""
		}
	}
}

func outcomeText(result json.RawMessage, failure *string) string {
	if failure != nil {
		return "failed: " + jsonb.SafeText(*failure, shownMessage)
	}
	return jsonb.SafeText(string(result), shownMessage)
}
