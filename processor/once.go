package processor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/windrow-go/windrow/model"
)

// Once calls effect unless it has already been done, under this name, for this row
// in this round. It is for effects outside the database, such as a mail: a mark is
// stored, and committed at once, when effect has returned nil, so that another try
// of the row, here or elsewhere, passes it by, whatever becomes of the row's
// outcome. ctx is the one that the handler was given, or made from it.
//
// A narrow gap remains: if the process dies, or the database is lost for good,
// after the effect and before its mark is stored, the effect is done again. Give the
// receiver model.Dataset.IdempotencyKey where it can make use of it. For effects on
// windrow's own database use model.Answer.Effect, which has no such gap.
func Once(ctx context.Context, row model.Dataset, name string, effect func(ctx context.Context) error) error {
	w, ok := ctx.Value(markerKey{}).(*worker)
	if !ok {
		return errors.New("once: the context is not one that a handler was given")
	}
	mark := model.Mark{ID: row.ID, Round: row.Round, Name: name}
	var done bool
	err := w.insist(ctx, func(ctx context.Context) (err error) {
		done, err = w.store.Marked(ctx, mark)
		return err
	})
	if err != nil {
		return fmt.Errorf("once %s: %w", name, err)
	}
	if done {
		return nil
	}
	if err := effect(ctx); err != nil {
		return err
	}
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(lastCheckIn, cancel) // as long as outcomes have
	})()
	err = w.insist(lasting, func(ctx context.Context) error { return w.store.Mark(ctx, mark) })
	if err != nil {
		return fmt.Errorf("once %s: it was done, but that could not be stored: %w", name, err)
	}
	return nil
}

type markerKey struct{}

// marking gives a handler's context what Once needs.
func (w *worker) marking(ctx context.Context) context.Context {
	return context.WithValue(ctx, markerKey{}, w)
}
