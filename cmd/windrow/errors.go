package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/errorgroups"
	"github.com/windrow-go/windrow/internal/jsonb"
)

// errorsFlags say which errors are listed, and how.
type errorsFlags struct {
	json      bool
	limit     int
	version   string
	byVersion bool
}

func (a *app) errorsCommand() *cobra.Command {
	var e errorsFlags
	cmd := &cobra.Command{
		Use:   "errors",
		Short: "List the distinct error messages, with counts and a sample row each",
		Long: `List the distinct error messages of the rows that failed for good and of those
that wait for another try, the most frequent first.

Numbers, ids, hex, instants and addresses in them are replaced by placeholders,
so that errors which differ only in their row are one line. Numbers that say what
went wrong stay (exit status 1, HTTP 503, 404 Not Found). Of messages that differ
only in a quoted text, ten are told apart; more become one line with <text>.
At most 1,000 messages are told apart, the rest are counted together; a count
with a + may lack rows that are counted there.

  FIRST, LAST   when the first and the last of the rows failed (UTC)
  VERSION       of the handler that failed; not known of rows that wait
  SAMPLE        the row that failed last, as windrow show takes it

A line of --json is
  {"message", "count", "at_least"?, "failed", "waiting", "first", "last",
   "versions": [at most ten], "more_versions"?, "sample_id", "sample_key"?,
   "sample_error", "other"?}
where "other" is true for the rows of all further messages together.

Rows that are being tried again just now, or are about to be without a delay, are
not among them.`,
		Example: `  windrow errors
  windrow errors --by-version
  windrow errors --json --limit 0 | jq -r .sample_id`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if e.limit < 0 {
				return usagef("--limit %d: use a number of messages, or 0 for all", e.limit)
			}
			s, err := a.open(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer s.Close()
			groups, others, err := a.groupErrors(cmd.Context(), s, e)
			if err != nil {
				return err
			}
			return a.printErrors(groups, others, e)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&e.json, "json", false, "print one JSON object a line")
	flags.IntVar(&e.limit, "limit", 20, "list only the `N` most frequent messages; 0: all")
	flags.StringVar(&e.version, "version", "", "only the failures of the handler with this `version`, or whose version begins so")
	flags.BoolVar(&e.byVersion, "by-version", false, "tell versions of the handler apart")
	withoutEnvironment(flags, "limit", "version")
	return cmd
}

// groupErrors reads all errors; others are the rows that belong to no group.
func (a *app) groupErrors(ctx context.Context, s store, e errorsFlags) (groups []errorgroups.Group, others errorgroups.Group, err error) {
	all := errorgroups.New(e.byVersion)
	var read atomic.Int64
	bar := a.display.Begin("errors", 0, func() (done, total int64) { return read.Load(), 0 })
	err = s.Failures(ctx, func(f checkout.Failure) error {
		read.Add(1)
		if e.version == "" || f.Version != nil && strings.HasPrefix(*f.Version, e.version) {
			all.Add(f)
		}
		return nil
	})
	bar.End()
	if err != nil {
		return nil, others, err
	}
	groups, others = all.Report()
	return groups, others, nil
}

// printErrors writes the groups up to the limit, and says what else there is.
func (a *app) printErrors(groups []errorgroups.Group, others errorgroups.Group, e errorsFlags) error {
	if len(groups) == 0 {
		a.say("no row has failed%s", map[bool]string{true: " with version " + e.version}[e.version != ""])
		return nil
	}
	sample := groups[0]
	var hidden []errorgroups.Group
	if e.limit > 0 && e.limit < len(groups) {
		groups, hidden = groups[:e.limit], groups[e.limit:]
	}
	write := a.errorTable
	if e.json {
		write = a.errorLines
	}
	if err := write(groups, others); err != nil {
		return err
	}
	if len(hidden) > 0 {
		var rows int64
		for _, group := range hidden {
			rows += group.Count
		}
		a.say("and %s, of %s: --limit 0 lists all", plural(int64(len(hidden)), "more message"), plural(rows, "row"))
	}
	if !e.json {
		a.say("one row, with all that is known about it: %s", a.again("show "+sampleOf(sample.Sample)))
	}
	return nil
}

// errorLine is the documented shape of errors --json.
type errorLine struct {
	Message      string    `json:"message"`
	Count        int64     `json:"count"`
	AtLeast      bool      `json:"at_least,omitempty"`
	Failed       int64     `json:"failed"`
	Waiting      int64     `json:"waiting"`
	First        time.Time `json:"first"`
	Last         time.Time `json:"last"`
	Versions     []string  `json:"versions"`
	MoreVersions bool      `json:"more_versions,omitempty"`
	SampleID     int64     `json:"sample_id"`
	SampleKey    *string   `json:"sample_key,omitempty"`
	SampleError  string    `json:"sample_error"`
	Other        bool      `json:"other,omitempty"`
}

func (a *app) errorLines(groups []errorgroups.Group, others errorgroups.Group) error {
	out := json.NewEncoder(a.stdout)
	out.SetEscapeHTML(false)
	for _, group := range groups {
		if err := out.Encode(errorLineOf(group)); err != nil {
			return err
		}
	}
	if others.Count == 0 {
		return nil
	}
	line := errorLineOf(others)
	line.Message, line.Other = otherMessages, true
	return out.Encode(line)
}

func errorLineOf(g errorgroups.Group) errorLine {
	return errorLine{
		Message: g.Message, Count: g.Count, AtLeast: g.AtLeast, Failed: g.Failed, Waiting: g.Waiting,
		First: g.First, Last: g.Last, Versions: append([]string{}, g.Versions...), MoreVersions: g.MoreVersions,
		SampleID: g.Sample.ID, SampleKey: g.Sample.Key, SampleError: g.Sample.Error,
	}
}

// otherMessages stands for the messages of the rows that are in no group.
const otherMessages = "other messages"

// shownMessage bounds a message in the table, in bytes.
const shownMessage = 200

func (a *app) errorTable(groups []errorgroups.Group, others errorgroups.Group) error {
	if others.Count > 0 {
		others.Message = otherMessages
		groups = append(groups[:len(groups):len(groups)], others)
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "COUNT\tFAILED\tWAITING\tFIRST\tLAST\tVERSION\tSAMPLE\t  MESSAGE")
	for _, group := range groups {
		count := humanize.Comma(group.Count)
		if group.AtLeast {
			count += "+"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t  %s\n",
			count, humanize.Comma(group.Failed), humanize.Comma(group.Waiting),
			group.First.Format(time.RFC3339), group.Last.Format(time.RFC3339),
			versionOf(group), sampleOf(group.Sample), jsonb.SafeText(group.Message, shownMessage))
	}
	return table.Flush()
}

// versionOf is a group's version, or how many it has.
func versionOf(group errorgroups.Group) string {
	switch {
	case group.MoreVersions:
		return fmt.Sprintf("over %d", len(group.Versions))
	case len(group.Versions) == 0:
		return "-"
	case len(group.Versions) > 1:
		return fmt.Sprintf("%d versions", len(group.Versions))
	case isPlain(group.Versions[0]):
		return group.Versions[0]
	default:
		return strconv.Quote(jsonb.SafeText(group.Versions[0], mostShownKey))
	}
}

// mostShownKey bounds what the table shows of a key, in bytes.
const mostShownKey = 40

// sampleOf names a row as windrow show takes it, by its key if that can be shown as it
// is.
func sampleOf(row checkout.Failure) string {
	if row.Key != nil && isPlain(*row.Key) && !strings.HasPrefix(*row.Key, "-") {
		return quoteArg(*row.Key)
	}
	return fmt.Sprintf("--id %d", row.ID)
}

// isPlain tells whether a text fits into a cell as it is.
func isPlain(s string) bool {
	return s != "" && len(s) <= mostShownKey && strings.IndexFunc(s, func(r rune) bool {
		return !unicode.IsPrint(r) || r == unicode.ReplacementChar
	}) < 0
}
