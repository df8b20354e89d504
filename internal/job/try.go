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

// Trial works the first rows of an input without storing anything.
type Trial struct {
	Source *intake.Source
	// Rows is how many rows to work.
	Rows int
	// Key names the field whose value is the row's key; empty for none.
	Key     string
	Handler processor.Handler
	// Reject takes bad records; nil makes the first one the trial's error.
	Reject func(*intake.BadRecord) error
}

// Run calls each with every row worked. It tries no row twice.
func (t *Trial) Run(ctx context.Context, each func(Tried) error) error {
	for i := 0; i < t.Rows; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		row, err := nextRow(t.Source, t.Key, "")
		if errors.Is(err, io.EOF) {
			return nil
		}
		var bad *intake.BadRecord
		if errors.As(err, &bad) && !bad.Fatal && t.Reject != nil {
			if err := t.Reject(bad); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		i++
		tried := Tried{Row: model.Dataset{ID: int64(i), Key: row.Key, Data: row.Data, Attempts: 1, Job: "try"}}
		tried.Result, tried.Err = call(ctx, t.Handler, tried.Row)
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
	answer := model.AnswerOf(value)
	if answer.Discard != nil {
		defer answer.Discard()
	}
	raw, isRaw := answer.Result.(json.RawMessage)
	if !isRaw {
		if raw, err = json.Marshal(answer.Result); err != nil {
			return nil, err
		}
	}
	safe, _, err := jsonb.Safe(raw)
	return safe, err
}
