package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/jsonb"
)

type addFlags struct {
	key    string
	at     string
	in     time.Duration
	asJSON bool

	keyed, delayed bool // --key, --in stood there
}

func (a *app) addCommand() *cobra.Command {
	var f addFlags
	cmd := &cobra.Command{
		Use:   "add [JSON]",
		Short: "Add one row, at once or for a later time",
		Long: `Add one row, and print its id. JSON is its data: one JSON value; - or nothing
reads it from standard input. With --at or --in the row waits: no worker gets it
before that time, by the database's clock, and one that is idle wakes up for it.

A key that is there already adds nothing, which is said; the id printed is that of
the row that has the key, and the exit code is 0: so a command that may have been
carried out can be repeated. What waits can be cancelled: windrow cancel KEY.`,
		Example: `  windrow add '{"to": "ann@example.org", "text": "Good morning"}' --key mail-17 --in 90m
  windrow add '{"to": "bob@example.org"}' --at 2026-12-24T18:00:00+01:00
  jq -c .order order.json | windrow add --key order-4711`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.keyed, f.delayed = cmd.Flags().Changed("key"), cmd.Flags().Changed("in")
			return a.addRow(cmd.Context(), &f, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.key, "key", "", "the row's `key`: the same key again adds nothing")
	flags.StringVar(&f.at, "at", "", "when the row comes due: a `time` such as 2026-12-24T18:00:00Z or …+01:00, with its zone")
	flags.DurationVar(&f.in, "in", 0, "the row comes due in this long, such as 90m")
	flags.BoolVar(&f.asJSON, "json", false, `print {"id", "key", "added", "available_at"}; the last is null for at once`)
	withoutEnvironment(flags, "key", "at", "in")
	return cmd
}

func (a *app) addRow(ctx context.Context, f *addFlags, args []string) error {
	row, err := f.row()
	if err != nil {
		return err
	}
	if row.Data, err = a.oneValue(ctx, args); err != nil {
		return err
	}
	s, err := a.open(ctx, true)
	if err != nil {
		return err
	}
	defer s.Close()
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	if f.delayed {
		row.AvailableAt = now.Add(f.in)
	}
	id, added, err := s.Add(ctx, row)
	if err != nil {
		return err
	}
	a.sayAdded(f, row, now, added)
	if !f.asJSON {
		_, err = fmt.Fprintln(a.stdout, id)
		return err
	}
	out := struct {
		ID          int64      `json:"id"`
		Key         *string    `json:"key"`
		Added       bool       `json:"added"`
		AvailableAt *time.Time `json:"available_at"`
	}{ID: id, Key: row.Key, Added: added}
	if added && row.AvailableAt.After(now) {
		at := row.AvailableAt.UTC()
		out.AvailableAt = &at
	}
	return json.NewEncoder(a.stdout).Encode(out)
}

// row is what the flags say of the row.
func (f *addFlags) row() (row checkout.NewRow, err error) {
	switch {
	case f.at != "" && f.delayed:
		return row, usagef("--at and --in exclude each other")
	case f.in < 0:
		return row, usagef("--in %v: must not be negative", f.in)
	case f.keyed && f.key == "":
		return row, usagef("--key: it is empty, which can't be a key")
	case !utf8.ValidString(f.key) || strings.ContainsRune(f.key, 0):
		return row, usagef("--key %q: a key is valid UTF-8 without the NUL character", f.key)
	}
	if f.keyed {
		row.Key = &f.key
	}
	if f.at != "" {
		row.AvailableAt, err = parseInstant("--at", f.at)
	}
	return row, err
}

// parseInstant reads a time with its zone: one without would mean another instant on
// another machine.
func parseInstant(flag, text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err == nil {
		return at.UTC(), nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			utc := at.Format(time.RFC3339)
			return at, usagef("%s %s: the zone is missing; write %s for UTC, or %s+01:00 and the like", flag, text, utc, strings.TrimSuffix(utc, "Z"))
		}
	}
	return at, usagef("%s %s: a time such as 2026-12-24T18:00:00Z or 2026-12-24T18:00:00+01:00 is wanted", flag, text)
}

// oneValue is the JSON value that stands in the arguments or on standard input.
func (a *app) oneValue(ctx context.Context, args []string) (json.RawMessage, error) {
	if len(args) == 1 && args[0] != "-" {
		data := []byte(args[0])
		if err := jsonb.Check(data); err != nil {
			return nil, usagef("the row's data: %w", err)
		}
		return data, nil
	}
	if len(args) == 0 && isTerminal(a.stdin) {
		return nil, usagef("add what? Give the row's data as JSON, or - for standard input")
	}
	data, err := io.ReadAll(io.LimitReader(untilDone(ctx, a.stdin), jsonb.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read standard input: %w", err)
	}
	if err := jsonb.Check(data); err != nil {
		return nil, usagef("standard input: %w; one value is one row: windrow load - takes many", err)
	}
	return data, nil
}

func (a *app) sayAdded(f *addFlags, row checkout.NewRow, now time.Time, added bool) {
	switch {
	case !added:
		a.say("a row with the key %q is there already: nothing was added", f.key)
	case row.AvailableAt.After(now):
		a.say("due at %s UTC, in %v", row.AvailableAt.UTC().Format("2006-01-02 15:04:05"), roundTime(row.AvailableAt.Sub(now)))
	case f.at != "":
		a.say("%s UTC is past: due at once", row.AvailableAt.UTC().Format("2006-01-02 15:04:05"))
	default:
		a.say("due at once")
	}
}
