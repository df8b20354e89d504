package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/windrow-go/windrow/intake"
	"github.com/windrow-go/windrow/internal/job"
)

// loadFlags say how input is read.
type loadFlags struct {
	format    string
	delimiter string
	key       string
	rejects   string
	limit     int64
	due       dueField
}

func (l *loadFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&l.format, "format", "", "csv, jsonl, json, lines or parquet (default: by name and content)")
	flags.StringVar(&l.delimiter, "delimiter", "", "what stands between CSV fields (default: comma; tab for .tsv)")
	flags.StringVar(&l.key, "key", "", "this `field` is the row's key: the same key again adds nothing")
	flags.StringVar(&l.rejects, "rejects", "", "collect bad records in this `file` and go on (exit 3)")
	flags.Int64Var(&l.limit, "limit", 0, "take only the first `N` records")
	flags.Var(&l.due, dueFlag, "this `field` says when the row comes due: RFC 3339 with its zone, or Unix seconds; missing or null: at once")
	_ = flags.MarkHidden(dueFlag) // fails only for an unknown name
	withoutEnvironment(flags, "key", "limit", dueFlag)
}

const dueFlag = "available-at"

// allowDueTimes offers the flag that only load has.
func (l *loadFlags) allowDueTimes(flags *pflag.FlagSet) {
	l.due.allowed = true
	flags.Lookup(dueFlag).Hidden = false
}

// dueField is the value of a flag that is refused with the reason where it makes no
// sense.
type dueField struct {
	name    string
	allowed bool
}

func (d *dueField) Set(name string) error {
	if !d.allowed {
		return errors.New("run ends when nothing is left to do now, and would write its results without the rows that wait for their time; " +
			"load them with windrow load, and have them worked by windrow work")
	}
	d.name = name
	return nil
}

func (d *dueField) String() string { return d.name }
func (d *dueField) Type() string   { return "string" }

const inputHelp = `
Input: CSV (header row; all values strings), JSON Lines, a JSON array, plain
lines, Parquet; gzip and zstd are unpacked; - is standard input.`

func (l *loadFlags) options() (intake.Options, error) {
	format, err := intake.ParseFormat(l.format)
	if err != nil {
		return intake.Options{}, usagef("--format: %w", err)
	}
	opts := intake.Options{Format: format}
	if l.delimiter == `\t` {
		l.delimiter = "\t"
	}
	if l.delimiter != "" {
		r, size := utf8.DecodeRuneInString(l.delimiter)
		if size != len(l.delimiter) {
			return opts, usagef("--delimiter %q: one character is wanted", l.delimiter)
		}
		opts.Delimiter = r
	}
	if l.limit < 0 {
		return opts, usagef("--limit %d: must not be negative", l.limit)
	}
	return opts, nil
}

// loader makes the loader of files, which are known by their paths from base; close the rejects it may have opened.
func (a *app) loader(ctx context.Context, l *loadFlags, s job.Store, files []string, base string) (*job.Loader, *rejects, error) {
	opts, err := l.options()
	if err != nil {
		return nil, nil, err
	}
	loader := &job.Loader{Store: s, Source: job.SourceName(files, base), Files: files, Stdin: untilDone(ctx, a.stdin), Intake: opts, Key: l.key, AvailableAt: l.due.name, Limit: l.limit}
	if l.rejects == "" {
		return loader, nil, nil
	}
	r := &rejects{path: l.rejects}
	loader.Reject = r.add
	return loader, r, nil
}

// rejects is the file of bad records: one JSON object a line with file, line,
// reason and the beginning of the text. It is made when there is one to write.
type rejects struct {
	path string
	file *os.File
}

func (r *rejects) add(bad *intake.BadRecord) error {
	if r.file == nil {
		file, err := os.OpenFile(r.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
		if err != nil {
			return fmt.Errorf("--rejects: %w", err)
		}
		r.file = file
	}
	line, err := json.Marshal(struct {
		File   string `json:"file"`
		Line   int64  `json:"line"`
		Column int    `json:"column,omitempty"`
		Reason string `json:"reason"`
		Raw    string `json:"raw,omitempty"`
	}{bad.File, bad.Line, bad.Column, bad.Reason, string(bad.Raw)})
	if err != nil {
		return err
	}
	if _, err := r.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("--rejects: %w", err)
	}
	return nil
}

func (r *rejects) close() error {
	if r == nil || r.file == nil {
		return nil
	}
	return r.file.Close()
}
