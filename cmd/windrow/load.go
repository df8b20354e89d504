package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/intake"
	"github.com/windrow-go/windrow/internal/job"
)

func (a *app) loadCommand() *cobra.Command {
	var l loadFlags
	var again, asJSON bool
	cmd := &cobra.Command{
		Use:   "load FILE...",
		Short: "Load rows from files",
		Long: `Load rows from files, streaming, in chunks: a load that was cut off goes on where
it was when the command is repeated, and one that is finished is not repeated by
accident.
` + inputHelp,
		Example: `  windrow load flights.parquet
  windrow load users.csv.gz --key email --rejects bad.jsonl
  windrow load reminders.csv --key id --available-at remind_at
  find . -name '*.jpg' | windrow load -`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("load which file? Name one, or - for standard input")
			}
			return a.loadInto(cmd.Context(), &l, args, again, asJSON)
		},
	}
	l.add(cmd.Flags())
	l.allowDueTimes(cmd.Flags())
	cmd.Flags().BoolVar(&again, "again", false, "load the files once more though they have been loaded")
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"records", "inserted", "duplicates", "changed", "rejected", "already"}`)
	withoutEnvironment(cmd.Flags(), "again")
	return cmd
}

func (a *app) loadInto(ctx context.Context, l *loadFlags, files []string, again, asJSON bool) error {
	opts, err := l.options()
	if err != nil {
		return err
	}
	if err := checkDistinct(files, namedFile{"--rejects", l.rejects}); err != nil {
		return err
	}
	if err := checkRejects(l.rejects); err != nil {
		return err
	}
	if err := checkInputs(files, l.rejects != "", opts); err != nil {
		return err
	}
	s, err := a.open(ctx, true)
	if err != nil {
		return err
	}
	defer s.Close()
	loader, bad, err := a.loader(ctx, l, s, files, "")
	if err != nil {
		return err
	}
	loader.Again = again
	loader.Replace = l.key != "" && !hasStdin(files)
	began := time.Now()
	loaded, err := a.load(ctx, loader)
	if closing := bad.close(); err == nil {
		err = closing
	}
	if err != nil {
		return a.loadFailed(ctx, loaded, err)
	}
	if err := a.analyze(ctx, s, loaded); err != nil {
		return err
	}
	if asJSON {
		err = json.NewEncoder(a.stdout).Encode(map[string]any{
			"records": loaded.Records, "inserted": loaded.Inserted, "duplicates": loaded.Duplicates,
			"changed": loaded.Changed, "rejected": loaded.Rejected, "already": loaded.Already})
	} else {
		a.sayLoaded(loaded, time.Since(began), l.rejects)
		a.say("work them:  %s", a.again("work --jq PROGRAM"))
	}
	if err == nil && loaded.Rejected > 0 {
		return &exitError{code: exitRows}
	}
	return err
}

func hasStdin(files []string) bool {
	for _, file := range files {
		if file == "-" {
			return true
		}
	}
	return false
}

// load runs a loader and shows how far it has come.
func (a *app) load(ctx context.Context, loader *job.Loader) (job.Loaded, error) {
	bar := a.display.Begin("load", 0, loader.Progress)
	defer bar.End()
	return loader.Run(ctx)
}

// loadFailed adds to an error how to go on.
func (a *app) loadFailed(ctx context.Context, loaded job.Loaded, err error) error {
	switch {
	case stoppedBy(ctx) != nil:
		a.say("stopped; %s loaded: the same command goes on from there", plural(loaded.Records, "record"))
		return err
	case errors.Is(err, checkout.ErrLoadMoved):
		return &exitError{code: exitLocked, err: err}
	case errors.Is(err, job.ErrInputChanged):
		return fmt.Errorf("%w; load it as a new input with --again", err)
	}
	var bad *intake.BadRecord
	if errors.As(err, &bad) {
		way := "mend it and repeat the command"
		if !bad.Fatal {
			way += ", or let --rejects FILE collect such records"
		}
		return fmt.Errorf("%w; loaded before it: %s; %s", err, plural(loaded.Records, "record"), way)
	}
	return err
}

func (a *app) analyze(ctx context.Context, s store, loaded job.Loaded) error {
	if loaded.New == 0 {
		return nil
	}
	ok, err := s.Analyze(ctx)
	if err == nil && !ok {
		a.say("the table's statistics were not refreshed: this role may not. Let its owner run: ANALYZE %s.datasets", a.schema)
	}
	return err
}

func (a *app) sayLoaded(loaded job.Loaded, took time.Duration, rejects string) {
	if loaded.Already {
		a.say("already loaded: %s; --again loads the input once more", plural(loaded.Records, "record"))
		return
	}
	rate := float64(loaded.New) / max(took.Seconds(), 1e-3)
	text := fmt.Sprintf("loaded %s in %s (%s rows/s)", plural(loaded.New, "row"), roundTime(took), humanize.Comma(int64(rate)))
	var more []string
	if loaded.Duplicates > 0 {
		more = append(more, humanize.Comma(loaded.Duplicates)+" had a key that is there already")
	}
	if loaded.Rejected > 0 {
		more = append(more, fmt.Sprintf("%s %s in %s", plural(loaded.Rejected, "bad record"), are(loaded.Rejected), rejects))
	}
	if len(more) > 0 {
		text += "; " + strings.Join(more, "; ")
	}
	a.say("%s", text)
	if loaded.Changed > 0 {
		a.say("warning: %s had a key that is there already with other data; the rows keep their old data", plural(loaded.Changed, "record"))
	}
}
