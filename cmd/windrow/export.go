package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/windrow-go/windrow/intake"
	"github.com/windrow-go/windrow/internal/job"
	"github.com/windrow-go/windrow/model"
)

// exportFlags say how results are written.
type exportFlags struct {
	output string
	errors string
	merge  bool
}

func (e *exportFlags) add(flags *pflag.FlagSet, output, usage string) {
	flags.StringVarP(&e.output, "output", "o", output, usage)
	flags.StringVar(&e.errors, "errors", "", "put the failed rows into this `file` instead")
	flags.BoolVar(&e.merge, "merge", false, "put the result's fields beside those of the input")
	withoutEnvironment(flags, "output", "errors")
}

const outputHelp = `
Output, .jsonl or .csv by the file's name; a JSON line is
  {"id", "key"?, "state": "done"|"failed", "result" or "error", "data"?}
with data, the row's input, where rows have no key to join the results back by.
In CSV the result's top-level fields are columns. The file appears whole or not
at all.`

// check finds what would keep the results from being written in the end. Auto as
// the format goes by the files' names.
func (e *exportFlags) check(format intake.Format) error {
	for _, out := range []namedFile{{"--output", e.output}, {"--errors", e.errors}} {
		if format == intake.Auto {
			if err := checkEnding(out); err != nil {
				return err
			}
		}
		if err := checkWritable(out); err != nil {
			return err
		}
	}
	return nil
}

func (e *exportFlags) exporter(a *app, s job.Store) *job.Exporter {
	return &job.Exporter{Store: s, Path: e.output, Stdout: a.stdout, ErrorsPath: e.errors, Merge: e.merge}
}

func (a *app) exportCommand() *cobra.Command {
	var e exportFlags
	var state, format string
	var data bool
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the results to a file",
		Long:  "Write the results of the processed rows, as they are at one instant, in the order of\ntheir ids.\n" + outputHelp,
		Example: `  windrow export -o results.jsonl
  windrow export -o table.csv --merge --state done
  windrow export --state failed | jq -r .error | sort | uniq -c`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := checkDistinct(nil, namedFile{"--output", e.output}, namedFile{"--errors", e.errors}, namedFile{"the database", a.address()})
			if err != nil {
				return err
			}
			chosen, err := parseState(state)
			if err != nil {
				return err
			}
			written, err := parseOutputFormat(format)
			if err != nil {
				return err
			}
			if err := e.check(written); err != nil {
				return err
			}
			s, err := a.open(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer s.Close()
			exporter := e.exporter(a, s)
			exporter.Data, exporter.State, exporter.Format = data, chosen, written
			_, err = a.export(cmd.Context(), exporter)
			return err
		},
	}
	e.add(cmd.Flags(), "-", "the `file` to write; - is standard output")
	cmd.Flags().StringVar(&state, "state", "all", "done, failed, or all of these two")
	cmd.Flags().StringVar(&format, "output-format", "", "jsonl or csv (default: by the file's name)")
	cmd.Flags().BoolVar(&data, "data", false, "write every row's data, not only of rows without a key")
	return cmd
}

func parseState(state string) (model.State, error) {
	switch state {
	case "all":
		return "", nil
	case "done", "failed":
		return model.State(state), nil
	}
	return "", usagef("--state %s: use done, failed or all", state)
}

func parseOutputFormat(format string) (intake.Format, error) {
	switch f := intake.Format(format); f {
	case intake.Auto, intake.JSONL, intake.CSV:
		return f, nil
	}
	return "", usagef("--output-format %s: use jsonl or csv", format)
}

// export runs an exporter and shows how far it has come.
func (a *app) export(ctx context.Context, exporter *job.Exporter) (job.Exported, error) {
	began := time.Now()
	bar := a.display.Begin("export", 0, exporter.Progress)
	out, err := exporter.Run(ctx)
	bar.End()
	if err == nil && exporter.Path != "-" {
		a.say("wrote %s to %s in %s", plural(out.Done+out.Failed, "row"), exporter.Path, roundTime(time.Since(began)))
	}
	return out, err
}
