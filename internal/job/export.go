package job

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"sync/atomic"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/intake"
	"github.com/windrow-go/windrow/model"
)

// Exporter writes the results of the processed rows, in the order of their ids,
// all as they were at one instant.
type Exporter struct {
	Store Store
	// Path is the file to write, by way of a temporary one beside it that is
	// renamed in the end; "-" is Stdout.
	Path   string
	Stdout io.Writer
	// ErrorsPath, if set, takes the failed rows, which Path then lacks.
	ErrorsPath string
	// Format is CSV or JSONL; Auto goes by each path, and is JSONL for "-".
	Format intake.Format
	// State is Done, Failed, or empty for both.
	State model.State
	// Merge puts the results' fields beside those of the rows' data.
	Merge bool
	// Data writes the data of every row; otherwise only that of rows without a
	// key, which could not be told apart without it.
	Data bool

	rows atomic.Int64
}

// Exported counts what was written.
type Exported struct {
	Done   int64
	Failed int64
}

// Progress tells how many rows have been written. It may be called from another
// goroutine.
func (e *Exporter) Progress() (done, total int64) { return e.rows.Load(), 0 }

// Run writes the files. On an error none of them has been touched.
func (e *Exporter) Run(ctx context.Context) (out Exported, err error) {
	results, err := e.open(e.Path)
	if err != nil {
		return out, err
	}
	defer results.abort()
	failures := results
	if e.ErrorsPath != "" {
		if failures, err = e.open(e.ErrorsPath); err != nil {
			return out, err
		}
		defer failures.abort()
	}
	opts := checkout.ExportOptions{State: e.State, WithData: e.Data || e.Merge, DataOfKeyless: true}
	err = e.Store.Export(ctx, opts, func(row checkout.Finished) error {
		e.rows.Add(1)
		if row.Error == nil {
			out.Done++
			return results.Write(lineOf(row))
		}
		out.Failed++
		return failures.Write(lineOf(row))
	})
	if err != nil {
		return out, err
	}
	if failures != results {
		if err := failures.commit(); err != nil {
			return out, err
		}
	}
	return out, results.commit()
}

func lineOf(row checkout.Finished) intake.Line {
	line := intake.Line{ID: row.ID, Key: row.Key, State: string(model.Done), Result: row.Result, Data: row.Data}
	if row.Error != nil {
		line.State, line.Result = string(model.Failed), nil
		line.Error, line.HasError = *row.Error, true
	}
	return line
}

// target is one file of results.
type target struct {
	*intake.Writer
	file *intake.AtomicFile // nil for standard output
}

func (e *Exporter) open(path string) (*target, error) {
	opts := intake.WriterOptions{Data: true, Merge: e.Merge}
	if path == "-" {
		w, err := intake.NewWriter(e.Stdout, e.format(path), opts)
		return &target{Writer: w}, err
	}
	file, err := intake.CreateAtomic(path)
	if err != nil {
		return nil, err
	}
	opts.TempDir = filepath.Dir(path)
	w, err := intake.NewWriter(file, e.format(path), opts)
	if err != nil {
		file.Abort()
		return nil, err
	}
	return &target{Writer: w, file: file}, nil
}

func (e *Exporter) format(path string) intake.Format {
	switch {
	case e.Format != intake.Auto:
		return e.Format
	case intake.FormatOf(path) == intake.CSV:
		return intake.CSV
	default:
		return intake.JSONL
	}
}

func (t *target) commit() error {
	if err := t.Close(); err != nil {
		return err
	}
	if t.file == nil {
		return nil
	}
	if err := t.file.Commit(); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// abort takes the temporary file away if it was not committed.
func (t *target) abort() {
	if t.file != nil {
		t.file.Abort()
	}
}
