package bench

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/model"
	"github.com/windrow-go/windrow/processor"
)

var (
	okResult  = json.RawMessage(`{"ok": true}`)
	errForNow = errors.New("fails at its first try, as asked")
)

// handlerOf takes as long for a row as it is told to, and fails some at first.
func handlerOf(t task) processor.Handler {
	return processor.HandlerFunc(func(ctx context.Context, d model.Dataset) (any, error) {
		if t.Handling > 0 {
			select {
			case <-time.After(t.Handling):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		if t.FailEvery > 0 && d.ID%int64(t.FailEvery) == 0 && d.Attempts-d.Losses <= 1 {
			return nil, errForNow
		}
		return okResult, nil
	})
}

// openStore opens the job that a task names.
func openStore(ctx context.Context, t task, rec *recorder) (processor.Store, func() error, error) {
	opts := checkout.Options{Schema: t.Schema, OnConflict: rec.conflict}
	if t.Subject == subjectSQLite {
		s, err := checkout.OpenSQLite(ctx, t.Address, false, opts)
		if err != nil {
			return nil, nil, err
		}
		return s, s.Close, nil
	}
	s, err := checkout.OpenPostgres(ctx, t.Address, opts)
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}

// watched is a store whose check-outs are timed and whose check-ins are counted.
type watched struct {
	processor.Store
	rec *recorder
}

func (w *watched) CheckOut(ctx context.Context, holder string, lease time.Duration, n int) ([]model.Claim, error) {
	began := time.Now()
	claims, err := w.Store.CheckOut(ctx, holder, lease, n)
	if err == nil {
		w.rec.checkedOut(began, len(claims))
	}
	return claims, err
}

func (w *watched) CheckIn(ctx context.Context, batch []model.CheckIn) (model.Receipt, error) {
	receipt, err := w.Store.CheckIn(ctx, batch)
	if err != nil {
		return receipt, err
	}
	finished := -len(receipt.Lost)
	for _, in := range batch {
		if in.Verdict <= model.VerdictFailed {
			finished++
		}
	}
	w.rec.finished(max(finished, 0))
	return receipt, err
}
