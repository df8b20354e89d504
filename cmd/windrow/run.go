package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/gofrs/flock"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/intake"
	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/internal/job"
	"github.com/windrow-go/windrow/model"
	"github.com/windrow-go/windrow/processor"
)

type runFlags struct {
	handler     handlerFlags
	worker      workerFlags
	metrics     metricsFlags
	load        loadFlags
	export      exportFlags
	try         int
	fresh       bool
	goOn        bool
	retryFailed bool
	beside      bool // the output is the default one, beside the input
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run INPUT... HANDLER [flags]",
		Short: "Load an input, work every row and write the results, in one go",
		Long: `Load an input into a database beside it, work every row, and write the results, in
the input's order. Stop it, or let it be killed, at any moment: the same command
goes on where it was, and ends with the same file.
` + inputHelp + "\n" + handlerHelp + "\n" + outputHelp,
		Example: `  windrow run airports.csv --jq '{iata, north: ((.latitude|tonumber) >= 0)}'
  windrow run users.jsonl --try 10 -- ./score --name {name}
  find . -name '*.jpg' | windrow run - --exec 'identify -format "%wx%h" "$(jq -r .)"'`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			inputs, command := splitAtDash(cmd, args)
			if len(inputs) == 0 {
				return usagef("run needs an input: a file, or - for standard input")
			}
			return a.runJob(cmd.Context(), &f, inputs, command)
		},
	}
	flags := cmd.Flags()
	f.handler.add(flags)
	f.load.add(flags)
	f.export.add(flags, "", "the `file` to write (default: INPUT.results.jsonl, beside it)")
	f.worker.add(flags, "50%")
	f.metrics.add(flags)
	flags.IntVar(&f.try, "try", 0, "work the first `N` rows, print data and result, store nothing")
	flags.BoolVar(&f.fresh, "fresh", false, "begin anew; the old database and results are moved aside")
	flags.BoolVar(&f.goOn, "continue", false, "keep finished rows though the input or the handler has changed")
	flags.BoolVar(&f.retryFailed, "retry-failed", false, "take up the failed rows again")
	withoutEnvironment(flags, "try", "fresh", "continue", "retry-failed")
	return cmd
}

func splitAtDash(cmd *cobra.Command, args []string) (before, after []string) {
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		return args[:dash], args[dash:]
	}
	return args, nil
}

func (a *app) runJob(ctx context.Context, f *runFlags, inputs, command []string) error {
	if err := checkStray(inputs); err != nil {
		return err
	}
	handler, err := f.handler.build(a, f.worker.slots(), command)
	if err != nil {
		return err
	}
	defer handler.Close()
	opts, err := f.worker.options(a, handler)
	if err != nil {
		return err
	}
	intakeOptions, err := f.load.options()
	if err != nil {
		return err
	}
	if f.fresh && f.goOn {
		return usagef("--fresh and --continue exclude each other")
	}
	if f.try != 0 {
		return a.try(ctx, f, inputs, handler.handler())
	}
	place := placeOf(inputs[0])
	if f.export.output == "" {
		f.export.output, f.beside = place+".results.jsonl", true
	}
	address := a.database
	if address == "" {
		address = place + ".windrow.db"
	}
	err = checkDistinct(inputs, namedFile{"--output", f.export.output}, namedFile{"--errors", f.export.errors},
		namedFile{"--rejects", f.load.rejects}, namedFile{"the database", address})
	if err != nil {
		return err
	}
	if err := a.checkOutputs(f, inputs); err != nil {
		return err
	}
	a.database = address // of which the commands that are suggested in the end have to know
	if err := checkInputs(inputs, f.load.rejects != "", intakeOptions); err != nil {
		return err
	}
	opts.UntilEmpty = true
	if a.log.Level() == zap.InfoLevel {
		opts.Logger = a.log.WithOptions(zap.IncreaseLevel(zap.WarnLevel)) // what it would tell is said here in sentences
	}
	stop, err := f.metrics.serve(ctx, a)
	if err != nil {
		return err
	}
	defer stop()
	return a.runAt(ctx, f, inputs, address, handler.fingerprinted, opts)
}

// checkStray finds a command that was not put behind --.
func checkStray(inputs []string) error {
	for _, input := range inputs[1:] {
		if input == "-" || exists(input) {
			continue
		}
		if _, err := exec.LookPath(input); err == nil {
			return usagef("unexpected argument %q: a command to run stands behind --", input)
		}
	}
	return nil
}

// checkOutputs finds what would keep the results from being written in the end.
func (a *app) checkOutputs(f *runFlags, inputs []string) error {
	err := f.export.check(intake.Auto)
	if err != nil && f.beside && checkWritable(namedFile{"", f.export.output}) != nil {
		way := "name another place with --output"
		if a.database == "" {
			way = "name other places with --output and --database"
		}
		return fmt.Errorf("the results can't be written beside %s; %s: %w", inputs[0], way, err)
	}
	if err != nil {
		return err
	}
	return checkRejects(f.load.rejects)
}

// checkInputs looks at the first record of every file, so that nothing is begun
// with an input that can't be read. Standard input can be read only once.
func checkInputs(inputs []string, rejects bool, opts intake.Options) error {
	for _, input := range inputs {
		if input == "-" {
			continue
		}
		source, err := intake.Open([]string{input}, nil, opts)
		if err != nil {
			return err
		}
		_, err = source.Next()
		source.Close()
		var bad *intake.BadRecord
		if errors.As(err, &bad) && !bad.Fatal && rejects || errors.Is(err, io.EOF) {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// placeOf is an input's path without the endings of its format and compression.
func placeOf(input string) string {
	if input == "-" {
		return "stdin"
	}
	dir, name := filepath.Split(input)
	for _, ending := range []string{".gz", ".zst"} {
		name = strings.TrimSuffix(name, ending)
	}
	if stem := strings.TrimSuffix(name, filepath.Ext(name)); stem != "" {
		name = stem
	}
	return dir + name
}

// runAt runs the job in the database at address.
func (a *app) runAt(ctx context.Context, f *runFlags, inputs []string, address string, handler fingerprinted, opts processor.Options) error {
	if f.fresh {
		if err := a.beginAnew(address, f.export); err != nil {
			return err
		}
	}
	s, err := a.openAt(ctx, address, true)
	if err != nil {
		return err
	}
	defer s.Close()
	unlock, err := lockFile(address, (*flock.Flock).TryLock)
	if err != nil {
		return err
	}
	defer unlock()
	loader, bad, err := a.loader(ctx, &f.load, s, inputs, baseOf(address))
	if err != nil {
		return err
	}
	defer bad.close()
	shot := &job.OneShot{Store: s, Loader: loader, Version: opts.Version, Continue: f.goOn}
	if err := a.prepare(ctx, f, shot, s); err != nil {
		return err
	}
	return a.workAndExport(ctx, f, loader.Source, s, handler, opts)
}

// prepare brings the table to where its rows can be worked.
func (a *app) prepare(ctx context.Context, f *runFlags, shot *job.OneShot, s store) error {
	err := shot.CheckHandler(ctx)
	if errors.Is(err, job.ErrHandlerChanged) {
		return waysOn(err)
	}
	if err != nil {
		return err
	}
	a.metrics.Doing("loading the input")
	began := time.Now()
	bar := a.display.Begin("load", 0, shot.Loader.Progress)
	loaded, err := shot.Load(ctx)
	bar.End()
	switch {
	case errors.Is(err, job.ErrInputChanged):
		return waysOn(err)
	case errors.Is(err, job.ErrNotWhole):
		return usagef("%w: --fresh begins anew", err)
	case errors.Is(err, job.ErrOtherRows):
		return usagef("%w; name another database with --database, or begin anew with --fresh", err)
	}
	if err != nil {
		return a.loadFailed(ctx, loaded, err)
	}
	if !loaded.Already {
		a.sayLoaded(loaded, time.Since(began), f.load.rejects)
	}
	if err := a.analyze(ctx, s, loaded); err != nil {
		return err
	}
	if file, lone := s.(*checkout.SQLite); lone {
		n, err := file.PutBackHeld(ctx)
		if err != nil {
			return err
		}
		if n > 0 {
			a.say("going on; %s %s being worked when the last start ended: taken up again", plural(n, "row"), were(n))
		}
	}
	if f.retryFailed {
		n, err := shot.RetryFailed(ctx, whoAmI())
		if err != nil {
			return err
		}
		a.say("%s %s taken up again", plural(n, "failed row"), are(n))
	}
	return nil
}

// baseOf is the folder of an SQLite file, from which its inputs are known; none for
// PostgreSQL.
func baseOf(address string) string {
	file, err := fileOf(address)
	if err != nil || isPostgres(address) {
		return ""
	}
	return filepath.Dir(file)
}

// waysOn names the two ways on from a change.
func waysOn(err error) error {
	return usagef("%w.\n  --continue   keep the finished rows as they are and go on\n  --fresh      begin anew; the old database and results are moved aside", err)
}

func (a *app) workAndExport(ctx context.Context, f *runFlags, source string, s store, handler processor.Handler, opts processor.Options) error {
	counts, err := s.Counts(ctx)
	if err != nil {
		return err
	}
	worked := counts.Unprocessed() > 0
	if worked {
		stats, took, err := a.process(ctx, s, handler, opts, counts.Unprocessed())
		a.say("%s", summary(stats, took))
		if err := workResult(ctx, opts, processor.Stats{}, err); err != nil {
			return a.runStopped(err)
		}
		if counts, err = s.Counts(ctx); err != nil {
			return err
		}
	}
	a.metrics.Doing("writing the results")
	exporter := f.export.exporter(a, s)
	if err := a.exportOnce(ctx, s, exporter, worked); err != nil {
		return err
	}
	where := "in " + exporter.Path
	if exporter.Path == "-" {
		where = "on standard output"
	}
	what := "all " + plural(counts.Total(), "row")
	if counts.Total() == 1 {
		what = "the one row"
	}
	a.say("%s %s finished: %s done, %s failed; results %s", what, are(counts.Total()),
		humanize.Comma(counts[model.Done]), humanize.Comma(counts[model.Failed]), where)
	if counts[model.Failed] > 0 {
		a.say("count their errors:  %s\n--retry-failed takes the failed ones up again", a.again("errors"))
	}
	rejected, err := rejectedOf(ctx, s, source)
	if err == nil && (counts[model.Failed] > 0 || rejected) {
		err = &exitError{code: exitRows}
	}
	return err
}

func (a *app) runStopped(err error) error {
	a.say("stopped; the same command goes on from here")
	return err
}

// noteOutput says how the output was written last.
const noteOutput = "output"

// exportOnce writes the results, unless they are there as they should be.
func (a *app) exportOnce(ctx context.Context, s store, exporter *job.Exporter, worked bool) error {
	want := fmt.Sprintf("%s, errors %s, merge %t", exporter.Path, exporter.ErrorsPath, exporter.Merge)
	before, err := s.Note(ctx, noteOutput)
	if err != nil {
		return err
	}
	if !worked && before == want && exporter.Path != "-" && exists(exporter.Path) && (exporter.ErrorsPath == "" || exists(exporter.ErrorsPath)) {
		return nil
	}
	if err := s.SetNote(ctx, noteOutput, ""); err != nil { // until it is written whole
		return err
	}
	if err := removeAbandoned(exporter); err != nil {
		return err
	}
	if _, err := a.export(ctx, exporter); err != nil {
		return err
	}
	return s.SetNote(ctx, noteOutput, want)
}

// removeAbandoned takes away what a run that was killed while it wrote its results
// has left of them.
func removeAbandoned(exporter *job.Exporter) error {
	for _, path := range []string{exporter.Path, exporter.ErrorsPath} {
		if path == "" || path == "-" {
			continue
		}
		if err := intake.RemoveAbandoned(path); err != nil {
			return fmt.Errorf("take away what a killed run left beside %s: %w", path, err)
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// beginAnew moves the database and the results aside.
func (a *app) beginAnew(address string, e exportFlags) error {
	if isPostgres(address) {
		return usagef("--fresh moves a database file aside; on PostgreSQL take another --schema")
	}
	unlock, err := lockFile(address, (*flock.Flock).TryLock)
	if err != nil {
		return err
	}
	defer unlock()
	file, err := fileOf(address)
	if err != nil {
		return err
	}
	// A killed run has left rows in the write-ahead log. Whoever closes the
	// database last folds the log into it; should it not open, it is moved as it is.
	db, err := database.OpenSQLite(file, false, a.log)
	if errors.Is(err, database.ErrForeign) {
		return err
	}
	if err == nil {
		_ = database.Close(db)
	}
	return a.moveAside(file, e)
}

// moveAside renames the database and the results that are there, all with the
// same new ending.
func (a *app) moveAside(file string, e exportFlags) error {
	ending := unusedEnding(file, e.output, e.errors)
	for _, log := range []string{"-wal", "-shm"} { // SQLite finds them by the database's name
		if err := rename(file+log, file+ending+log); err != nil {
			return err
		}
	}
	for _, file := range []string{file, e.output, e.errors} {
		if file == "" || !exists(file) {
			continue
		}
		if err := rename(file, file+ending); err != nil {
			return err
		}
		a.say("moved aside: %s", file+ending)
	}
	return nil
}

// rename moves a file that is there.
func rename(from, to string) error {
	if err := os.Rename(from, to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("move aside: %w", err)
	}
	return nil
}

// unusedEnding is the time, and a number where the second has been used before:
// nothing that was moved aside may be replaced.
func unusedEnding(files ...string) string {
	ending := ".old-" + time.Now().Format("20060102-150405")
	used := func(ending string) bool {
		return slices.ContainsFunc(files, func(file string) bool { return file != "" && exists(file+ending) })
	}
	numbered := ending
	for n := 2; used(numbered); n++ {
		numbered = fmt.Sprintf("%s-%d", ending, n)
	}
	return numbered
}

// rejectedOf tells whether the job's load has passed bad records over.
func rejectedOf(ctx context.Context, s store, source string) (bool, error) {
	load, err := s.LatestLoad(ctx, source)
	if errors.Is(err, checkout.ErrNotFound) {
		return false, nil
	}
	return load.Rejected > 0, err
}
