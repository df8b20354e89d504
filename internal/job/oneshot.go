package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/model"
)

// The notes that a one-shot run keeps in its database.
const (
	noteHandler = "handler" // the version of the handler that made the results
	noteReading = "reading" // how the input is read: key, format, delimiter
	noteInput   = "input"   // size and time of the input's files when last seen whole
)

// ErrHandlerChanged says that finished rows were made by another handler.
var ErrHandlerChanged = errors.New("the handler has changed since the last start")

// ErrNotWhole says that a changed input was never loaded whole as it was before, so
// that there is nothing to go on with.
var ErrNotWhole = errors.New("the input has changed before it was loaded whole")

// ErrOtherRows says that the database holds rows that are not of this input.
var ErrOtherRows = errors.New("the database holds other rows")

// OneShot is a job that loads, works and exports in one go, and can be cut off
// and started again at any point. Its owner calls the steps in their order:
// CheckHandler, Load, RetryFailed if asked, then works the rows and exports.
type OneShot struct {
	Store  Store
	Loader *Loader
	// Version identifies the handler.
	Version string
	// Continue keeps finished rows though input or handler have changed.
	Continue bool
}

// CheckHandler compares the handler with the one that made the results so far.
func (o *OneShot) CheckHandler(ctx context.Context) error {
	before, err := o.Store.Note(ctx, noteHandler)
	if err != nil || before == o.Version {
		return err
	}
	if before != "" && !o.Continue {
		counts, err := o.Store.Counts(ctx)
		if err != nil {
			return err
		}
		if n := counts[model.Done] + counts[model.Failed]; n > 0 {
			return fmt.Errorf("%w: %d rows were finished with the other one", ErrHandlerChanged, n)
		}
	}
	return o.Store.SetNote(ctx, noteHandler, o.Version)
}

// Load brings the table up to the input. An input whose files look as they did
// when it was last loaded whole isn't read again.
func (o *OneShot) Load(ctx context.Context) (Loaded, error) {
	if err := o.checkSource(ctx); err != nil {
		return Loaded{}, err
	}
	if err := o.checkReading(ctx); err != nil {
		if errors.Is(err, ErrInputChanged) && o.Continue {
			return o.keepLoaded(ctx)
		}
		return Loaded{}, err
	}
	looks := looksOf(o.Loader.Files, o.Loader.Limit)
	if looks != "" {
		before, err := o.Store.Note(ctx, noteInput)
		if err != nil {
			return Loaded{}, err
		}
		if before == looks {
			load, err := o.Store.LatestLoad(ctx, o.Loader.Source)
			if err == nil && load.FinishedAt != nil {
				return Loaded{Load: load, Already: true}, nil
			}
		}
	}
	loaded, err := o.Loader.Run(ctx)
	if errors.Is(err, ErrInputChanged) && o.Continue {
		loaded, err = o.continueChanged(ctx)
	}
	if err != nil {
		return loaded, err
	}
	if looks == "" {
		return loaded, nil
	}
	return loaded, o.Store.SetNote(ctx, noteInput, looks)
}

// continueChanged takes a changed input over as far as that can be done without
// touching finished rows: with keys, the rows whose keys are new; without,
// nothing, since the rows loaded can't be told from the changed ones.
func (o *OneShot) continueChanged(ctx context.Context) (Loaded, error) {
	if o.Loader.Key != "" {
		o.Loader.Again = true
		return o.Loader.Run(ctx)
	}
	return o.keepLoaded(ctx)
}

// keepLoaded goes on with the rows that are there, if they are a whole input.
func (o *OneShot) keepLoaded(ctx context.Context) (Loaded, error) {
	load, err := o.Store.LatestLoad(ctx, o.Loader.Source)
	if err == nil && load.FinishedAt == nil {
		err = ErrNotWhole
	}
	return Loaded{Load: load, Already: true}, err
}

// checkReading compares how the input is to be read with how its rows were.
func (o *OneShot) checkReading(ctx context.Context) error {
	l := o.Loader
	reading := fmt.Sprintf("--key %q --format %q --delimiter %q", l.Key, l.Intake.Format, delimiterText(l.Intake.Delimiter))
	before, err := o.Store.Note(ctx, noteReading)
	if err != nil || before == reading {
		return err
	}
	if before != "" {
		load, err := o.Store.LatestLoad(ctx, l.Source)
		if err != nil && !errors.Is(err, checkout.ErrNotFound) {
			return err
		}
		if load.Inserted > 0 {
			return fmt.Errorf("%w: its rows were read with %s, and are now to be read with %s", ErrInputChanged, before, reading)
		}
	}
	return o.Store.SetNote(ctx, noteReading, reading)
}

func delimiterText(r rune) string {
	if r == 0 {
		return ""
	}
	return string(r)
}

// checkSource makes sure that the database holds the rows of this input and of no
// other: all that it holds is worked and exported.
func (o *OneShot) checkSource(ctx context.Context) error {
	sources, err := o.Store.Sources(ctx)
	if err != nil {
		return err
	}
	for _, source := range sources {
		switch source {
		case o.Loader.Source:
		case "":
			return fmt.Errorf("%w: rows that no load has brought", ErrOtherRows)
		default:
			return fmt.Errorf("%w: those of %s", ErrOtherRows, strings.ReplaceAll(source, "\n", ", "))
		}
	}
	return nil
}

// looksOf describes files by what can be seen without reading them; empty if
// that tells nothing, as for standard input.
func looksOf(files []string, limit int64) string {
	type look struct {
		Name  string
		Size  int64
		MTime int64
	}
	var looks []look
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil || !info.Mode().IsRegular() {
			return ""
		}
		looks = append(looks, look{filepath.Base(file), info.Size(), info.ModTime().UnixNano()})
	}
	text, err := json.Marshal(struct {
		Files []look
		Limit int64
	}{looks, limit})
	if err != nil {
		return ""
	}
	return string(text)
}

// RetryFailed puts the failed rows back.
func (o *OneShot) RetryFailed(ctx context.Context, by string) (int64, error) {
	out, err := o.Store.Reprocess(ctx, checkout.Selection{Failed: true}, checkout.ReprocessOptions{By: by})
	return out.PutBack, err
}
