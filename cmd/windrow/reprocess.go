package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/windrow-go/windrow/checkout"
)

type reprocessFlags struct {
	failed bool
	all    bool
	keys   []string
	dryRun bool
	yes    bool
	asJSON bool
}

func (a *app) reprocessCommand() *cobra.Command {
	var f reprocessFlags
	cmd := &cobra.Command{
		Use:   "reprocess --failed | --all | --keys A,B",
		Short: "Put processed rows back, to be worked again",
		Long: `Put rows back, to be worked again in a new round with all their attempts. Their
results stay readable until the next ones are checked in. A row that a worker
holds is left to it, and is worked again after its check-in.`,
		Example: `  windrow reprocess --failed
  windrow reprocess --keys SFO,JFK
  windrow reprocess --all --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sel := checkout.Selection{Failed: f.failed, All: f.all, Keys: f.keys}
			if n := selections(sel); n != 1 {
				return usagef("reprocess which rows? Give exactly one of --failed, --all, --keys")
			}
			s, err := a.open(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer s.Close()
			return a.reprocess(cmd.Context(), s, sel, f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.failed, "failed", false, "the rows that failed for good")
	flags.BoolVar(&f.all, "all", false, "every row that was ever tried")
	flags.StringSliceVar(&f.keys, "keys", nil, "the rows with these `keys`, separated by commas")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only count them, by state")
	flags.BoolVar(&f.yes, "yes", false, "don't ask before --all")
	flags.BoolVar(&f.asJSON, "json", false, `print {"run", "put_back", "deferred", "missing"}; with --dry-run the counts by state`)
	withoutEnvironment(flags, "failed", "all", "keys", "dry-run", "yes")
	return cmd
}

func selections(sel checkout.Selection) int {
	n := 0
	for _, set := range []bool{sel.Failed, sel.All, len(sel.Keys) > 0} {
		if set {
			n++
		}
	}
	return n
}

func (a *app) reprocess(ctx context.Context, s store, sel checkout.Selection, f reprocessFlags) error {
	if f.dryRun || sel.All {
		counts, err := s.Count(ctx, sel)
		if err != nil {
			return err
		}
		if f.dryRun {
			return a.printSelection(counts, f.asJSON)
		}
		question := fmt.Sprintf("%s %s put back, to be worked again.", plural(counts.Total(), "row"), are(counts.Total()))
		if err := a.confirm(question, f.yes); err != nil {
			return err
		}
	}
	out, err := s.Reprocess(ctx, sel, whoAmI())
	if err != nil {
		return err
	}
	if f.asJSON {
		return json.NewEncoder(a.stdout).Encode(out)
	}
	fmt.Fprintf(a.stdout, "run %d: %s put back\n", out.Run, plural(out.PutBack, "row"))
	if out.Deferred > 0 {
		verb, their := are(out.Deferred), "their"
		if out.Deferred == 1 {
			their = "its"
		}
		fmt.Fprintf(a.stdout, "%s that %s being worked %s worked again after %s check-in\n", plural(out.Deferred, "row"), verb, verb, their)
	}
	if len(out.Missing) > 0 {
		return fmt.Errorf("no row has the keys: %s", strings.Join(out.Missing, ", "))
	}
	return nil
}

func (a *app) printSelection(counts checkout.Counts, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(a.stdout).Encode(counts)
	}
	fmt.Fprintf(a.stdout, "%s would be put back:\n", plural(counts.Total(), "row"))
	for state, n := range counts {
		if n > 0 {
			fmt.Fprintf(a.stdout, "  %s %s\n", humanize.Comma(n), state)
		}
	}
	return nil
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
