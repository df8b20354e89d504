package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/windrow-go/windrow/checkout"
)

// verifyReport is the documented shape of verify --json.
type verifyReport struct {
	OK       bool               `json:"ok"`
	Rows     int64              `json:"rows"`
	Expired  int64              `json:"expired"`
	Offences int64              `json:"offences"`
	Checks   []checkout.Check   `json:"checks"`
	Counters []checkout.Counter `json:"counters"`
	Mended   bool               `json:"mended"`
	Unmended string             `json:"unmended,omitempty"`
}

func (a *app) verifyCommand() *cobra.Command {
	var asJSON, noMend bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Prove from the data that nothing is wrong",
		Long: `Look at every row, key and counter, at the indexes and at how the database uses
them, and tell what is not as it must be. Workers may go on: all is looked at as
it was at one instant. It takes as long as a pass over the table does.

  ok        looked at, and as it should be
  3 rows    are not as they should be; ten of each check at most are named
  skipped   not looked at; the line says why

The tallies, which windrow status goes by, are compared with the counts. Where they
differ, rows were changed by plain SQL, or by workers of an older version: that is
no fault, and is mended, unless --no-mend forbids it or the role may not write to
tallies. Nothing else is changed. Leases that have run out are no faults either: the
next check-outs take their rows.

--json prints
  {"ok", "rows", "expired" (leases that have run out), "offences",
   "checks": [{"check", "what" (must hold), "offences", "samples"?: [{"id"?,
     "reason", "cure"?}], "skipped"?, "note"?}],
   "counters": [{"counter" (done, failed, rows, ids), "kept", "counted"}],
   "mended", "unmended"? (why not, if counters differ)}

It exits with 1 if something is wrong, else with 0. docs/operations.md says what each
check means.`,
		Example: `  windrow verify
  windrow verify --no-mend --json | jq '.checks[] | select(.offences > 0)'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.open(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer s.Close()
			found, err := a.verify(cmd.Context(), s, noMend)
			if err != nil {
				return err
			}
			if asJSON {
				err = json.NewEncoder(a.stdout).Encode(verifyReportOf(found))
			} else {
				err = a.printVerification(found)
			}
			if err == nil && found.Offences() > 0 {
				return &exitError{code: exitFailure} // all has been said
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&noMend, "no-mend", false, "leave tallies that differ from the counts as they are")
	return cmd
}

func (a *app) verify(ctx context.Context, s store, noMend bool) (checkout.Verification, error) {
	var rows, about atomic.Int64
	bar := a.display.Begin("verify", 0, func() (done, total int64) { return rows.Load(), about.Load() })
	defer bar.End()
	found, err := s.Verify(ctx, checkout.VerifyOptions{NoMend: noMend, Progress: func(done, total int64) {
		rows.Store(done)
		about.Store(total)
	}})
	if err == nil && noMend && found.Differs() {
		found.Unmended = "--no-mend forbids it"
	}
	return found, err
}

func verifyReportOf(found checkout.Verification) verifyReport {
	return verifyReport{
		OK: found.Offences() == 0, Rows: found.Rows, Expired: found.Expired, Offences: found.Offences(),
		Checks: found.Checks, Counters: append([]checkout.Counter{}, found.Counters...),
		Mended: found.Mended, Unmended: found.Unmended,
	}
}

// printVerification writes a line for each check, its offences below, and a verdict.
func (a *app) printVerification(found checkout.Verification) error {
	var text strings.Builder
	skipped := int64(0)
	for _, c := range found.Checks {
		if c.Skipped {
			skipped++
		}
		fmt.Fprintf(&text, "%-9s %-15s %s\n", standing(c), c.Name, checkText(c))
		a.writeOffences(&text, c)
	}
	writeCounters(&text, found)
	if found.Expired > 0 {
		fmt.Fprintf(&text, "%s run out: the next check-outs take their rows\n", haveHas(found.Expired, "lease"))
	}
	fmt.Fprintf(&text, "\n%s\n", verifyVerdict(found, skipped))
	_, err := fmt.Fprint(a.stdout, text.String())
	return err
}

// standing is ok, or how much is wrong.
func standing(c checkout.Check) string {
	switch {
	case c.Skipped:
		return "skipped"
	case c.Offences == 0:
		return "ok"
	case len(c.Samples) > 0 && c.Samples[0].ID == nil:
		return plural(c.Offences, "fault")
	default:
		return plural(c.Offences, "row")
	}
}

func checkText(c checkout.Check) string {
	if c.Note == "" {
		return c.What
	}
	return c.What + " (" + c.Note + ")"
}

// writeOffences names what is wrong, and how to look at it or what to do.
func (a *app) writeOffences(text *strings.Builder, c checkout.Check) {
	for _, o := range c.Samples {
		if o.ID == nil {
			fmt.Fprintf(text, "          %s\n", o.Reason)
		} else {
			fmt.Fprintf(text, "          row %d %s\n", *o.ID, o.Reason)
			fmt.Fprintf(text, "            look: %s\n", a.again(fmt.Sprintf("show --id %d", *o.ID)))
		}
		if o.Cure != "" {
			fmt.Fprintf(text, "            mend: %s\n", o.Cure)
		}
	}
	if more := c.Offences - int64(len(c.Samples)); more > 0 {
		fmt.Fprintf(text, "          and %s more\n", humanize.Comma(more))
	}
}

// writeCounters tells of the tallies, and what became of differences.
func writeCounters(text *strings.Builder, found checkout.Verification) {
	if !found.Differs() {
		if len(found.Counters) > 0 {
			fmt.Fprintf(text, "%-9s %-15s %s\n", "ok", "tallies", "what windrow status goes by is what was counted")
		}
		return
	}
	state, remark := "mended", "rows were changed by plain SQL, or by workers of an older version; now they agree"
	if !found.Mended {
		state, remark = "differ", "rows were changed by plain SQL, or by workers of an older version; not mended: "+found.Unmended
	}
	fmt.Fprintf(text, "%-9s %-15s %s\n", state, "tallies", remark)
	for _, c := range found.Counters {
		if c.Kept != c.Counted {
			fmt.Fprintf(text, "          %s: %s by the tallies, %s counted\n", c.Name, humanize.Comma(c.Kept), humanize.Comma(c.Counted))
		}
	}
}

func haveHas(n int64, one string) string {
	if n == 1 {
		return "1 " + one + " has"
	}
	return plural(n, one) + " have"
}

func verifyVerdict(found checkout.Verification, skipped int64) string {
	looked := fmt.Sprintf("%s, %s", plural(found.Rows, "row"), plural(int64(len(found.Checks))-skipped, "check"))
	if skipped > 0 {
		looked += fmt.Sprintf(" (%d skipped)", skipped)
	}
	if n := found.Offences(); n > 0 {
		return fmt.Sprintf("%s: %s, listed above.", looked, plural(n, "fault"))
	}
	return looked + ": nothing is wrong."
}
