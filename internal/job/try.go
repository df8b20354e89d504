package job

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/windrow-go/windrow/intake"
	"github.com/windrow-go/windrow/internal/jsonb"
	"github.com/windrow-go/windrow/model"
	"github.com/windrow-go/windrow/processor"
)

// Tried is one row of a trial: what went in and what came out.
type Tried struct {
	Row    model.Dataset
	Result json.RawMessage
	Err    error
}

// Try works the first n records of source and calls each with every one. It
// stores nothing and tries no row twice.
func Try(ctx context.Context, source *intake.Source, n int, handler processor.Handler, each func(Tried) error) error {
	for i := range n {
		record, err := source.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		tried := Tried{Row: model.Dataset{ID: int64(i + 1), Data: record.Data, Attempts: 1, Job: "try"}}
		tried.Result, tried.Err = call(ctx, handler, tried.Row)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := each(tried); err != nil {
			return err
		}
	}
	return nil
}

func call(ctx context.Context, handler processor.Handler, row model.Dataset) (json.RawMessage, error) {
	value, err := handler.Handle(ctx, row)
	if err != nil {
		return nil, err
	}
	raw, isRaw := value.(json.RawMessage)
	if !isRaw {
		if raw, err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	safe, _, err := jsonb.Safe(raw)
	return safe, err
}
