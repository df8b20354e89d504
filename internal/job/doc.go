// Package job is the main job step by step: load an input, work it, write the
// results, and the three in one go, resumable at every point. It knows stores,
// files and workers, but no flags and no terminal.
package job

import (
	"context"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/processor"
)

// Store is what the steps need of a job's tables.
type Store interface {
	processor.Store
	LatestLoad(ctx context.Context, source string) (checkout.Load, error)
	BeginLoad(ctx context.Context, source string, after int64) (checkout.Load, error)
	Sources(ctx context.Context) ([]string, error)
	Append(ctx context.Context, load *checkout.Load, c checkout.Chunk) error
	Analyze(ctx context.Context) (bool, error)
	Export(ctx context.Context, opts checkout.ExportOptions, each func(checkout.Finished) error) error
	Counts(ctx context.Context) (checkout.Counts, error)
	Reprocess(ctx context.Context, sel checkout.Selection, opts checkout.ReprocessOptions) (checkout.Reprocessed, error)
	Note(ctx context.Context, name string) (string, error)
	SetNote(ctx context.Context, name, value string) error
}

var (
	_ Store = (*checkout.Postgres)(nil)
	_ Store = (*checkout.SQLite)(nil)
)
