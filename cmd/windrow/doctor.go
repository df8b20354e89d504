package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/internal/doctor"
)

func (a *app) doctorCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look at the server as an operator would: what is wrong, why it matters, what mends it",
		Long: `Look at the database as an operator would: the server and its settings, who holds
old snapshots, vacuum, the table and its indexes, pooler, clock, free space, and
this role's rights. Run it as the workers' role, and from a worker's machine: what
is set for a role, or hidden from it, is seen only so.

Each finding says what was found, why it matters to workers, and the command that
mends it, ready to paste. Nothing is changed, whatever is found.

  error     something does not work, or a promise does not hold
  warning   workers are slower for it, or will be, or something is at risk
  note      worth knowing; or something that could not be looked at
  ok        looked at, and as it should be

A line of --json is
  {"severity", "check", "what", "why"?, "cure"?}
with the same four severities, the worst first.

It exits with 1 if there is an error among the findings, else with 0.
docs/operations.md says what each finding means.`,
		Example: `  windrow doctor
  windrow doctor --database postgres://worker@db.example/mine
  windrow doctor --json | jq -r 'select(.severity == "error") | .cure'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings, err := a.examine(cmd.Context())
			if err != nil {
				return err
			}
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			if asJSON {
				err = a.findingLines(findings)
			} else {
				err = a.findingText(findings)
			}
			if err == nil && doctor.Worst(findings) == doctor.Error {
				return &exitError{code: exitFailure} // all has been said
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return cmd
}

// examine looks at the chosen database.
func (a *app) examine(ctx context.Context) ([]doctor.Finding, error) {
	opts := doctor.Options{Schema: a.schema, Words: plainText}
	address := a.address()
	if isPostgres(address) {
		a.say("database: PostgreSQL, %s, schema %s", database.ServerName(address), a.schema)
		return doctor.Postgres(ctx, address, opts), nil
	}
	file, err := fileOf(address)
	if err != nil {
		return nil, err
	}
	a.say("database: SQLite, %s", file)
	return doctor.SQLite(ctx, file, opts), nil
}

func (a *app) findingLines(findings []doctor.Finding) error {
	out := json.NewEncoder(a.stdout)
	out.SetEscapeHTML(false)
	for _, f := range findings {
		if err := out.Encode(f); err != nil {
			return err
		}
	}
	return nil
}

// findingWidth is where the lines of a finding end. A cure's are left whole.
const findingWidth = 100

func (a *app) findingText(findings []doctor.Finding) error {
	var text strings.Builder
	counts := map[doctor.Severity]int64{}
	for _, f := range findings {
		counts[f.Severity]++
		if f.Severity == doctor.OK {
			if counts[doctor.OK] == 1 && len(findings) > 0 {
				fmt.Fprintln(&text, "As they should be:")
			}
			fmt.Fprintf(&text, "  %-18s %s\n", f.Check, f.What)
			continue
		}
		fmt.Fprintf(&text, "%-8s %s\n", strings.ToUpper(string(f.Severity)), wrapped(f.Check+": "+f.What, 9))
		if f.Why != "" {
			fmt.Fprintf(&text, "  why    %s\n", wrapped(f.Why, 9))
		}
		if f.Cure != "" {
			fmt.Fprintf(&text, "  mend   %s\n", strings.ReplaceAll(f.Cure, "\n", "\n         "))
		}
		fmt.Fprintln(&text)
	}
	fmt.Fprintf(&text, "\n%s\n", verdict(counts))
	_, err := fmt.Fprint(a.stdout, text.String())
	return err
}

// wrapped breaks a text into lines, indented from the second on.
func wrapped(text string, indent int) string {
	var b strings.Builder
	column := indent
	for i, word := range strings.Fields(text) {
		length := len([]rune(word))
		switch {
		case i == 0:
		case column+1+length > findingWidth:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += length
	}
	return b.String()
}

// verdict sums the findings up in a line.
func verdict(counts map[doctor.Severity]int64) string {
	found := fmt.Sprintf("%s, %s, %s, %d fine: ", plural(counts[doctor.Error], "error"), plural(counts[doctor.Warning], "warning"),
		plural(counts[doctor.Note], "note"), counts[doctor.OK])
	switch {
	case counts[doctor.Error] > 0:
		return found + "something does not work, or a promise does not hold."
	case counts[doctor.Warning] > 0:
		return found + "workers can work, slower or less safely than they could."
	case counts[doctor.Note] > 0:
		return found + "all is in order; the notes are worth a look."
	default:
		return found + "all is in order."
	}
}
