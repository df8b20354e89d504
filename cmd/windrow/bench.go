package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/windrow-go/windrow/bench"
	"github.com/windrow-go/windrow/bench/report"
)

func (a *app) benchCommand() *cobra.Command {
	var opts bench.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:       "bench SCENARIO [flags]",
		Short:     "Measure windrow on your own machine or server",
		Long:      benchHelp(),
		ValidArgs: append(bench.Names(), "all"),
		Example: `  windrow bench throughput
  windrow bench drain --rows 300000 --processes 40
  windrow bench throughput --database postgres://me@server/db --rounds 3 --json > results/throughput.jsonl
  windrow bench report results`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("name one scenario: %s, or all", strings.Join(bench.Names(), ", "))
			}
			if args[0] != "all" && !slices.Contains(bench.Names(), args[0]) {
				return usagef("unknown scenario %q: use %s, or all", args[0], strings.Join(bench.Names(), ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.benchDatabase(&opts); err != nil {
				return err
			}
			if min(opts.Rows, opts.Processes, opts.Concurrency, opts.Batch, opts.Payload, opts.Rounds) < 0 || opts.Seconds < 0 {
				return usagef("bench: a number must not be negative")
			}
			names := args
			if args[0] == "all" {
				names = bench.Names()
			}
			return a.bench(cmd, names, opts, asJSON)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&opts.Rows, "rows", 0, "rows in the table (default: the scenario's own)")
	flags.IntVar(&opts.Processes, "processes", 0, "worker processes (default: the scenario's own)")
	flags.IntVarP(&opts.Concurrency, "concurrency", "j", 0, "slots of each process (default: the scenario's own)")
	flags.IntVar(&opts.Batch, "batch", 0, "most rows of a check-out (default: the scenario's own, mostly automatic)")
	flags.IntVar(&opts.Payload, "payload", 0, "`bytes` of each row's data (default 200)")
	flags.Float64Var(&opts.Seconds, "seconds", 0, "stop each run after so many seconds (default: when all rows are done)")
	flags.IntVar(&opts.Rounds, "rounds", 1, "repeat every run, the subjects in turn")
	flags.StringSliceVar(&opts.Subjects, "subject", nil, "only these of the scenario's subjects, such as windrow,limit")
	flags.BoolVar(&asJSON, "json", false, "a line of JSON for each run")
	withoutEnvironment(flags, "rows", "processes", "concurrency", "batch", "payload", "seconds", "rounds", "subject", "json")
	cmd.AddCommand(a.benchReportCommand())
	return cmd
}

func benchHelp() string {
	var b strings.Builder
	b.WriteString(`Run a load test with real worker processes, and print what it measured. A run in
which a row was lost, or handed out twice, fails.

A private PostgreSQL with fsync on is started for it and removed at the end. Only
where --database is typed (the environment is not enough) is that server measured:
in a schema with a random name, which is dropped at the end.

Scenarios:
`)
	for _, name := range bench.Names() {
		fmt.Fprintf(&b, "  %-11s %s\n", name, bench.About(name))
	}
	b.WriteString(`  all         all of them, one after the other; the last takes half an hour

A scenario that varies something (contention the processes and the batch, scale the
rows, wide the payload) keeps to what is typed. load and sqlite have one process and
go on to the end, whatever --processes, --batch of load, and --seconds say.`)
	return b.String()
}

// benchDatabase takes a typed address only.
func (a *app) benchDatabase(opts *bench.Options) error {
	if !a.databaseTyped {
		return nil
	}
	if !isPostgres(a.database) {
		return usagef("--database %s: bench takes a postgres:// address; the sqlite scenario makes a file of its own", a.database)
	}
	opts.Database = a.database
	return nil
}

func (a *app) bench(cmd *cobra.Command, names []string, opts bench.Options, asJSON bool) error {
	opts.Say = func(text string) { a.say("%s", text) }
	opts.Progress = func(what string, total int64, done func() int64) func() {
		bar := a.display.Begin(what, total, func() (int64, int64) { return done(), 0 })
		return bar.End
	}
	print := a.benchPrinter()
	if asJSON {
		encoder := json.NewEncoder(a.stdout)
		print = func(r bench.Result) { _ = encoder.Encode(r) }
	}
	opts.Done = print
	for _, name := range names {
		err := bench.Run(cmd.Context(), name, opts)
		var unsound *bench.Unsound
		if errors.As(err, &unsound) {
			print(unsound.Result)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// benchPrinter prints results for people: machine and server once, then a line a
// run.
func (a *app) benchPrinter() func(bench.Result) {
	first := true
	return func(r bench.Result) {
		if first {
			first = false
			fmt.Fprintf(a.stdout, "%s, %d cores, %s; %s\n", r.Machine.Processor, r.Machine.Cores, humanize.IBytes(uint64(r.Machine.Memory)), r.Machine.Go)
			fmt.Fprintf(a.stdout, "%s %s%s\n", r.Server.Engine, r.Server.Version, settingsText(r.Server.Settings))
		}
		p := r.Parameters
		name := strings.TrimSpace(r.Scenario + " " + r.Subject + " " + r.Case)
		fmt.Fprintf(a.stdout, "\n%s: %s rows/s\n", name, humanize.Comma(int64(r.RowsPerSecond)))
		w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
		line := func(what, format string, args ...any) {
			fmt.Fprintf(w, "  %s\t%s\n", what, fmt.Sprintf(format, args...))
		}
		line("parameters", "%s rows of %d bytes, %d processes of %d slots, batch %s", humanize.Comma(int64(p.Rows)), p.Payload, p.Processes, p.Concurrency, batchText(p.Batch))
		line("took", "%.2f s; first quarter %s rows/s, last quarter %s rows/s", r.Seconds, humanize.Comma(int64(r.FirstQuarter)), humanize.Comma(int64(r.LastQuarter)))
		if r.CheckOuts > 0 {
			line("check-outs", "%s, and %s empty; p50 %.1f ms, p95 %.1f ms, p99 %.1f ms", humanize.Comma(r.CheckOuts), humanize.Comma(r.EmptyCheckOuts), r.CheckOutP50, r.CheckOutP95, r.CheckOutP99)
			line("conflicts", "%.2f %% of check-outs%s", 100*r.ConflictsPerCheckOut, reasonsText(r.Conflicts))
		}
		if r.WALBytesPerRow > 0 {
			line("server", "%.1f µs of processor time a row, %.0f bytes of WAL a row, %s dead rows", r.ServerMicros, r.WALBytesPerRow, humanize.Comma(r.DeadTuples))
		}
		if r.ClientMemory > 0 {
			line("clients", "%.1f µs a row, %s at most in a process", r.ClientMicros, humanize.IBytes(uint64(r.ClientMemory)))
		}
		for _, figure := range sortedKeys(r.Figures) {
			line(strings.ReplaceAll(figure, "_", " "), "%.4g", r.Figures[figure])
		}
		line("lost, doubled", "%d, %d", r.Lost, r.Doubled)
		_ = w.Flush()
	}
}

func batchText(n int) string {
	if n == 0 {
		return "automatic"
	}
	return humanize.Comma(int64(n))
}

func settingsText(settings map[string]string) string {
	var parts []string
	for _, name := range sortedKeys(settings) {
		parts = append(parts, name+"="+settings[name])
	}
	if len(parts) == 0 {
		return ""
	}
	return "; " + strings.Join(parts, ", ")
}

func reasonsText(conflicts map[string]int64) string {
	var parts []string
	for _, reason := range sortedKeys(conflicts) {
		parts = append(parts, fmt.Sprintf("%s: %d", reason, conflicts[reason]))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func (a *app) benchReportCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "report DIR",
		Short: "Make tables and charts of saved results",
		Long: `Read the results in DIR (files .json or .jsonl, as --json prints them) and write
DIR/benchmarks.md with its charts beside it, in DIR/benchmarks.`,
		Example: `  windrow bench throughput --rounds 3 --json > results/throughput.jsonl
  windrow bench report results`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			results, err := report.Read(args[0])
			if err != nil {
				return err
			}
			files, err := report.Write(results, args[0])
			for _, file := range files {
				fmt.Fprintln(a.stdout, file)
			}
			return err
		},
	}
}
