package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/jsonb"
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
	// Estimated is true if some counts are estimates: those of Estimates.
	Estimated bool     `json:"estimated"`
	Estimates []string `json:"estimates,omitempty"`
	// Next is how many seconds until a row is available: 0 now, null never or not known.
	Next *float64 `json:"next_seconds"`
	// OldestDue is for how many seconds the row due longest has been waiting to be
	// checked out again; null: no such row.
	OldestDue *float64 `json:"oldest_due_seconds"`
	Rate      float64  `json:"rate"`
	// ETA is in seconds; null: can't be told.
	ETA      *float64 `json:"eta_seconds"`
	Workers  int      `json:"live_workers"`
	Slowed   int      `json:"slowed_workers"`
	PausedBy string   `json:"paused_by,omitempty"`
}

type statusFlags struct {
	asJSON bool
	exact  bool
	watch  bool
}

// watchEvery is how often status --watch looks.
const watchEvery = time.Second

func (a *app) statusCommand() *cobra.Command {
	var f statusFlags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Tell how far the job is: rows by state, rate, time left, workers",
		Long: `Tell how far the job is, in a second, however large the table: up to about
200,000 rows are counted; of more, the done and the failed are known by tallies
that check-ins leave.

  fresh      may be checked out          in_flight  held by a worker
  waiting    for a retry or a due time   expired    held by a worker that is gone
  done       processed, with a result    failed     processed, with an error

A count with ≈ is an estimate: rows have come or gone by plain SQL, or there are
too many to be counted in time. --exact counts all rows in one pass over the
table; windrow verify does so too and mends the tallies.

The rate is that of the last minute. The longest due is for how long a row whose
retry or due time has come has been waiting for a worker.

--json prints
  {"total", "fresh", "waiting", "in_flight", "expired", "done", "failed",
   "estimated", "estimates"?: [names], "next_seconds" (until a row is available;
   null: none will be, or not known), "oldest_due_seconds" (or null), "rate" (rows a second),
   "eta_seconds" (or null), "live_workers", "slowed_workers", "paused_by"?}`,
		Example: `  windrow status
  windrow status --watch
  windrow status --json | jq .failed`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.open(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer s.Close()
			if f.watch {
				return a.watchStatus(cmd.Context(), s, f)
			}
			return a.status(cmd.Context(), s, f, a.stdout)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.asJSON, "json", false, "print one JSON object")
	flags.BoolVar(&f.exact, "exact", false, "count all rows, however long that takes")
	flags.BoolVar(&f.watch, "watch", false, "show it again every second, until Ctrl-C")
	withoutEnvironment(flags, "exact", "watch")
	return cmd
}

func (a *app) status(ctx context.Context, s store, f statusFlags, out io.Writer) error {
	overview, err := s.Overview(ctx, f.exact)
	if err != nil {
		return err
	}
	if f.asJSON {
		return json.NewEncoder(out).Encode(statusReportOf(overview))
	}
	return printStatus(out, overview)
}

func statusReportOf(o checkout.Overview) statusReport {
	report := statusReport{
		Total: o.Counts.Total(), Fresh: o.Counts[model.Fresh], Waiting: o.Counts[model.Waiting],
		InFlight: o.Counts[model.InFlight], Expired: o.Counts[model.Expired],
		Done: o.Counts[model.Done], Failed: o.Counts[model.Failed],
		Estimated: !o.Exact(), Estimates: estimatesOf(o),
		Rate: o.Rate, PausedBy: o.PausedBy,
	}
	if o.Next >= 0 {
		report.Next = seconds(o.Next)
	}
	if o.OldestDue > 0 {
		report.OldestDue = seconds(o.OldestDue)
	}
	if eta := o.ETA(); eta >= 0 {
		report.ETA = seconds(eta)
	}
	for _, w := range o.Live() {
		report.Workers++
		if w.State(o.Now) == model.WorkerSlowed {
			report.Slowed++
		}
	}
	return report
}

// estimatesOf names the counts that are estimates.
func estimatesOf(o checkout.Overview) (names []string) {
	if o.TotalEstimated {
		names = append(names, "total")
	}
	for _, state := range o.Estimated {
		names = append(names, string(state))
	}
	return names
}

func seconds(d time.Duration) *float64 {
	s := d.Seconds()
	return &s
}

func printStatus(out io.Writer, o checkout.Overview) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(name string, n int64, estimated bool) {
		fmt.Fprintf(table, "%s\t%s\t\n", name, approximately(n, estimated))
	}
	line("total", o.Counts.Total(), o.TotalEstimated)
	for _, state := range []model.State{model.Fresh, model.Waiting, model.InFlight, model.Expired, model.Done, model.Failed} {
		line(string(state), o.Counts[state], o.IsEstimate(state))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, remark := range statusRemarks(o) {
		if _, err := fmt.Fprintln(out, remark); err != nil {
			return err
		}
	}
	return nil
}

// approximately is a count, marked if it is an estimate.
func approximately(n int64, estimated bool) string {
	if estimated {
		return "≈" + humanize.Comma(n)
	}
	return humanize.Comma(n)
}

// statusRemarks are what there is to say besides the counts.
func statusRemarks(o checkout.Overview) []string {
	var remarks []string
	say := func(format string, args ...any) { remarks = append(remarks, fmt.Sprintf(format, args...)) }
	live := o.Live()
	switch {
	case len(live) > 0:
		say("%s rows/s over the last minute, by %s%s", humanize.CommafWithDigits(o.Rate, 1), plural(int64(len(live)), "worker"), timeLeft(o))
	case o.Counts.Unprocessed() > 0:
		say("no worker is at work")
	}
	if o.PausedBy != "" {
		say("paused by %s: nothing is checked out until windrow resume", jsonb.SafeText(o.PausedBy, shownMessage))
	}
	for _, w := range live {
		if w.Trouble != "" {
			say("slowed down: %s: %s", jsonb.SafeText(w.Holder, shownMessage), jsonb.SafeText(w.Trouble, shownMessage))
		}
	}
	if o.Next > 0 {
		say("the next row is available in %s", o.Next.Round(time.Second))
	}
	if o.OldestDue >= time.Second {
		say("the longest due row has been waiting for %s", roundTime(o.OldestDue))
	}
	return remarks
}

func timeLeft(o checkout.Overview) string {
	eta := o.ETA()
	if eta <= 0 {
		return ""
	}
	return fmt.Sprintf(", about %s left", eta.Round(time.Second))
}

// watchStatus shows the status again and again: in place on a terminal.
func (a *app) watchStatus(ctx context.Context, s store, f statusFlags) error {
	inPlace := isTerminal(a.stdout) && !f.asJSON
	lines := 0
	for {
		var text strings.Builder
		if err := a.status(ctx, s, f, &text); err != nil {
			return endOfWatch(ctx, err)
		}
		if inPlace && lines > 0 {
			fmt.Fprintf(a.stdout, "\x1b[%dA\x1b[J", lines) // up, and clear to the end
		}
		lines = strings.Count(text.String(), "\n")
		separator := ""
		if !inPlace && !f.asJSON {
			separator = "\n"
		}
		if _, err := io.WriteString(a.stdout, text.String()+separator); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchEvery):
		}
	}
}

// endOfWatch is no error if the user has ended it.
func endOfWatch(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
