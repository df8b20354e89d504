package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/job"
	"github.com/windrow-go/windrow/model"
	"github.com/windrow-go/windrow/processor"
)

// reprocessFlags say which rows are put back, and how.
type reprocessFlags struct {
	failed     bool
	all        bool
	errorText  string
	notVersion string
	where      string
	keys       []string
	keyFile    string
	sample     int
	keep       bool
	dryRun     bool
	yes        bool
	wait       bool
	asJSON     bool
}

func (f *reprocessFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&f.failed, "failed", false, "the rows that failed for good")
	flags.BoolVar(&f.all, "all", false, "every row that was ever tried")
	flags.StringVar(&f.errorText, "error", "", "the rows that failed with such an error: a `text` that occurs in it; * and the placeholders of windrow errors stand for anything")
	flags.StringVar(&f.notVersion, "version-not", "", "the processed rows whose result is of another `version` of the handler, or of none")
	flags.StringVar(&f.where, "where", "", "the rows that meet this `condition` in SQL over the table's columns, e.g. \"data->>'country' = 'PL'\"")
	flags.StringSliceVar(&f.keys, "keys", nil, "the rows with these `keys`, separated by commas")
	flags.StringVar(&f.keyFile, "key-file", "", "the rows whose keys are the lines of this `file`; -: of stdin")
	flags.IntVar(&f.sample, "sample", 0, "only `N` of these rows, chosen at random")
	flags.BoolVar(&f.keep, "keep-history", false, "keep the outcomes that are replaced, for windrow show and diff")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only tell which rows, and how long they would take")
	flags.BoolVar(&f.yes, "yes", false, "don't ask before --all")
	flags.BoolVar(&f.wait, "wait", false, "wait until the fleet has worked the rows")
	flags.BoolVar(&f.asJSON, "json", false, "print one JSON object")
	withoutEnvironment(flags, "failed", "all", "error", "version-not", "where", "keys", "key-file", "sample", "keep-history", "dry-run", "yes", "wait")
}

// selection is what the flags select.
func (f *reprocessFlags) selection(stdin io.Reader) (sel checkout.Selection, done func(), err error) {
	sel = checkout.Selection{All: f.all, Failed: f.failed, Error: f.errorText, NotVersion: f.notVersion, Where: f.where, Keys: f.keys}
	some := f.failed || f.errorText != "" || f.notVersion != "" || f.where != "" || len(f.keys) > 0 || f.keyFile != ""
	switch {
	case !f.all && !some:
		return sel, nil, usagef("reprocess which rows? Give --failed, --error, --version-not, --where, --keys, --key-file, or --all")
	case f.all && some:
		return sel, nil, usagef("--all takes every row, and goes with no other selection")
	case len(f.keys) > 0 && f.keyFile != "":
		return sel, nil, usagef("use --keys or --key-file")
	case f.sample < 0:
		return sel, nil, usagef("--sample %d: must be at least 1", f.sample)
	case f.keyFile == "":
		return sel, func() {}, nil
	case f.keyFile == "-":
		sel.Name, sel.MoreKeys = "stdin", linesOf(stdin)
		return sel, func() {}, nil
	}
	file, err := os.Open(f.keyFile)
	if err != nil {
		return sel, nil, usagef("--key-file: %w", err)
	}
	sel.Name, sel.MoreKeys = f.keyFile, linesOf(file)
	return sel, func() { file.Close() }, nil
}

// linesOf reads n further lines at a time.
func linesOf(r io.Reader) func(n int) ([]string, error) {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 1<<20)
	return func(n int) (lines []string, err error) {
		for len(lines) < n && scanner.Scan() {
			lines = append(lines, scanner.Text())
		}
		return lines, scanner.Err()
	}
}

func (a *app) reprocessCommand() *cobra.Command {
	var f reprocessFlags
	var h handlerFlags
	var w workerFlags
	cmd := &cobra.Command{
		Use:   "reprocess SELECTION [HANDLER]",
		Short: "Put rows back, to be worked again, by the fleet or at once",
		Long: `Put rows back, to be worked again in a new round with all their attempts. Their
results stay readable until the next ones are checked in. A row that a worker
holds is left to it, and is worked again after its check-in.

Which rows: --failed, --error, --version-not, --where, --keys, --key-file, of which
several narrow the choice down; or --all. --sample takes some of them by chance.

With a handler the rows are worked here and now, to the end. Without one they are
left to the workers that are running; --wait waits for these.

Rows are put back in short transactions, and, while workers are at work, slowly
enough for them. Cut off, the same command goes on where it was. Each time is a run:
windrow runs lists them, windrow runs cancel N puts back as they were the rows that
have not been worked yet, windrow diff N compares the outcomes.

--where is only ever evaluated in transactions that read.

--json prints {"run", "put_back", "deferred", "resumed"?, "missing"?, "missing_keys"?};
with --dry-run {"counts": by state, "total", "first": [{"id", "key"?}],
"rate" (rows a second, lately), "seconds" (or null)}.
` + handlerHelp,
		Example: `  windrow reprocess --failed
  windrow reprocess --failed --jq '{id, n: (.a + .b)}'
  windrow reprocess --error 'HTTP <n>' --dry-run
  windrow reprocess --version-not v7 --sample 100 --keep-history --wait
  windrow reprocess --where "data->>'country' = 'PL'" --exec ./label.py
  windrow reprocess --all --yes`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			command, err := afterDash(cmd, args, 0)
			if err != nil {
				return err
			}
			sel, done, err := f.selection(a.stdin)
			if err != nil {
				return err
			}
			defer done()
			r := &reprocess{app: a, flags: f, sel: sel}
			if h.given(command) {
				handler, err := h.build(a, w.slots(), command)
				if err != nil {
					return err
				}
				defer handler.Close()
				if r.opts, err = w.options(a, handler); err != nil {
					return err
				}
				r.handler, r.opts.UntilEmpty = handler.handler(), true
			}
			return r.run(cmd.Context())
		},
	}
	f.add(cmd.Flags())
	h.add(cmd.Flags())
	w.add(cmd.Flags(), "none")
	// A handler that the environment names for the workers is not one to work with here.
	withoutEnvironment(cmd.Flags(), "jq", "jq-file", "exec", "stream", "http")
	return cmd
}

// reprocess is one reprocess command.
type reprocess struct {
	*app
	flags   reprocessFlags
	sel     checkout.Selection
	handler processor.Handler // nil: the fleet works the rows
	opts    processor.Options
}

func (r *reprocess) run(ctx context.Context) error {
	if r.handler != nil && (r.flags.wait || r.flags.dryRun) {
		return usagef("with a handler, neither --wait nor --dry-run")
	}
	s, err := r.open(ctx, false)
	if err != nil {
		return err
	}
	defer s.Close()
	if r.flags.dryRun {
		return r.conditionIsUsage(r.dryRun(ctx, s))
	}
	if r.sel.All {
		if err := r.ask(ctx, s); err != nil {
			return err
		}
	}
	out, err := r.putBack(ctx, s)
	if err != nil {
		return r.conditionIsUsage(err)
	}
	if err := r.report(out); err != nil {
		return err
	}
	switch {
	case r.handler != nil:
		err = r.workToTheEnd(ctx, s)
	case r.flags.wait:
		err = r.waitFor(ctx, s, out.Run)
	}
	if err == nil && out.MissingKeys > 0 {
		return missingKeys(out)
	}
	return err
}

// conditionIsUsage: what is wrong with --where is wrong on the command line.
func (r *reprocess) conditionIsUsage(err error) error {
	if errors.Is(err, checkout.ErrCondition) {
		return usagef("--where: %w", err)
	}
	return err
}

func missingKeys(out checkout.Reprocessed) error {
	names := strings.Join(out.Missing, ", ")
	if more := out.MissingKeys - int64(len(out.Missing)); more > 0 {
		names += fmt.Sprintf(" and %s more", humanize.Comma(more))
	}
	return fmt.Errorf("no row has the keys: %s", names)
}

func (r *reprocess) ask(ctx context.Context, s store) error {
	counts, err := s.Count(ctx, r.sel)
	if err != nil {
		return err
	}
	question := fmt.Sprintf("%s %s put back, to be worked again.", plural(counts.Total(), "row"), are(counts.Total()))
	return r.confirm(question, r.flags.yes)
}

// putBack puts the rows back, with an eye on the workers.
func (r *reprocess) putBack(ctx context.Context, s store) (checkout.Reprocessed, error) {
	pace := &job.Pace{Workers: s.Workers}
	var looked, of atomic.Int64
	bar := r.display.Begin("put back", 0, func() (int64, int64) { return looked.Load(), of.Load() })
	defer bar.End()
	return s.Reprocess(ctx, r.sel, checkout.ReprocessOptions{
		By: whoAmI(), KeepHistory: r.flags.keep, Sample: r.flags.sample,
		Progress: func(took time.Duration, _ checkout.Reprocessed, n, all int64) error {
			looked.Store(n)
			of.Store(all)
			return pace.Rest(ctx, took)
		},
	})
}

func (r *reprocess) report(out checkout.Reprocessed) error {
	if r.flags.asJSON {
		return json.NewEncoder(r.stdout).Encode(out)
	}
	resumed := ""
	if out.Resumed {
		resumed = ", gone on with"
	}
	fmt.Fprintf(r.stdout, "run %d%s: %s put back\n", out.Run, resumed, plural(out.PutBack, "row"))
	if out.Deferred > 0 {
		verb, their := are(out.Deferred), "their"
		if out.Deferred == 1 {
			their = "its"
		}
		fmt.Fprintf(r.stdout, "%s that %s being worked %s worked again after %s check-in\n", plural(out.Deferred, "row"), verb, verb, their)
	}
	return nil
}

// workToTheEnd works what there is to work, as windrow work --until-empty does.
func (r *reprocess) workToTheEnd(ctx context.Context, s store) error {
	return r.workOn(ctx, s, r.handler, r.opts)
}

// waitFor waits until the rows of a run have been worked, by whomever.
func (r *reprocess) waitFor(ctx context.Context, s store, run int64) error {
	workers, now, err := s.Workers(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(workers, func(w model.Worker) bool { return w.IsThere(now) }) {
		r.say("no worker is there to work the rows: start windrow work, or see windrow workers")
	}
	var done, total atomic.Int64
	bar := r.display.Begin("worked", 0, func() (int64, int64) { return done.Load(), total.Load() })
	err = job.AwaitRun(ctx, s, run, func(left, of int64) {
		total.Store(of)
		done.Store(of - left)
	})
	bar.End()
	if err == nil {
		r.say("all rows of run %d have been worked", run)
	}
	return err
}

// firstRows is how many rows a dry run names.
const firstRows = 10

// dryReport is the documented shape of reprocess --dry-run --json.
type dryReport struct {
	Counts  checkout.Counts `json:"counts"`
	Total   int64           `json:"total"`
	First   []dryRow        `json:"first"`
	Rate    float64         `json:"rate"`
	Seconds *float64        `json:"seconds"`
}

type dryRow struct {
	ID  int64   `json:"id"`
	Key *string `json:"key,omitempty"`
}

func (r *reprocess) dryRun(ctx context.Context, s store) error {
	if r.sel.MoreKeys != nil {
		keys, err := r.sel.MoreKeys(1 << 30) // they are gone through twice
		if err != nil {
			return err
		}
		r.sel.Keys, r.sel.MoreKeys = keys, nil
	}
	report, err := r.dryReport(ctx, s)
	if err != nil || r.flags.asJSON {
		return errors.Join(err, r.encode(report, err))
	}
	fmt.Fprintf(r.stdout, "%s would be put back:\n", plural(report.Total, "row"))
	for _, state := range []model.State{model.Done, model.Failed, model.Waiting, model.InFlight, model.Expired, model.Fresh} {
		if n := report.Counts[state]; n > 0 {
			fmt.Fprintf(r.stdout, "  %s %s\n", humanize.Comma(n), state)
		}
	}
	if len(report.First) > 0 {
		fmt.Fprintln(r.stdout, "the first of them:")
	}
	for _, row := range report.First {
		fmt.Fprintf(r.stdout, "  %s\n", r.again("show "+sampleOf(checkout.Failure{ID: row.ID, Key: row.Key})))
	}
	if report.Seconds != nil {
		left := time.Duration(*report.Seconds * float64(time.Second))
		fmt.Fprintf(r.stdout, "at the recent %s rows/s they would take %s\n", humanize.CommafWithDigits(report.Rate, 1), roundTime(left))
	}
	return nil
}

func (r *reprocess) encode(report dryReport, err error) error {
	if err != nil {
		return nil
	}
	return json.NewEncoder(r.stdout).Encode(report)
}

func (r *reprocess) dryReport(ctx context.Context, s store) (report dryReport, err error) {
	if report.Counts, err = s.Count(ctx, r.sel); err != nil {
		return report, err
	}
	report.Total = report.Counts.Total()
	ids, err := s.First(ctx, r.sel, firstRows)
	if err != nil {
		return report, err
	}
	report.First = []dryRow{}
	for _, id := range ids {
		row, _, err := s.ByID(ctx, id)
		if err != nil {
			return report, err
		}
		report.First = append(report.First, dryRow{ID: id, Key: row.Key})
	}
	if r.flags.sample > 0 {
		report.Total = min(report.Total, int64(r.flags.sample))
	}
	overview, err := s.Overview(ctx, false)
	if err != nil {
		return report, err
	}
	if report.Rate = overview.RecentRate(); report.Rate > 0 {
		seconds := float64(report.Total) / report.Rate
		report.Seconds = &seconds
	}
	return report, nil
}

// whoAmI is user@host, for the table of runs.
func whoAmI() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return name + "@" + host
}
