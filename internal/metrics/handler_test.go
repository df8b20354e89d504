package metrics_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/windrow-go/windrow/internal/metrics"
	"github.com/windrow-go/windrow/model"
	"github.com/windrow-go/windrow/processor"
)

func TestABatchHandlerStaysOneAndNoOtherBecomesOne(t *testing.T) {
	w := metrics.New()
	if _, can := w.Handler(handle(nil)).(processor.BatchHandler); can {
		t.Error("a handler of single rows takes batches")
	}
	if _, can := w.Handler(processor.BatchHandlerFunc(nil)).(processor.BatchHandler); !can {
		t.Error("a batch handler takes no batches any more")
	}
}

func TestBatchesAreTimedAsOneCall(t *testing.T) {
	j := onSQLite(t)
	j.load(6)
	check(t, j.work(t.Context(), processor.BatchHandlerFunc(func(_ context.Context, rows []model.Dataset) ([]model.Reply, error) {
		replies := make([]model.Reply, len(rows))
		for i, row := range rows {
			if row.ID == 6 {
				replies[i].Err = processor.Permanent(errors.New("this one not"))
			}
		}
		return replies, nil
	}), processor.Options{Concurrency: 1, BatchRows: 3, BatchWait: time.Second, UntilEmpty: true, MaxBatch: 6})())
	s := j.scrape()
	s.wants(t, map[string]float64{
		handlerCalls("ok"):                     1,
		handlerCalls("partial"):                1,
		`windrow_rows_total{outcome="done"}`:   5,
		`windrow_rows_total{outcome="failed"}`: 1,
	})
}

func TestCallsAreClassedByHowTheyEnd(t *testing.T) {
	ended := func(cause error) context.Context {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(cause)
		return ctx
	}
	broken := errors.New("broken")
	tests := map[string]struct {
		ctx  context.Context
		err  error
		want string
	}{
		"a result":                        {context.Background(), nil, "ok"},
		"a result though time was up":     {ended(processor.ErrTimeout), nil, "ok"},
		"an error":                        {context.Background(), broken, "error"},
		"hopeless":                        {context.Background(), processor.Permanent(broken), "permanent"},
		"down":                            {context.Background(), processor.Unavailable(broken), "unavailable"},
		"time is up":                      {ended(processor.ErrTimeout), context.DeadlineExceeded, "timeout"},
		"hopeless because its time is up": {ended(processor.ErrTimeout), processor.Permanent(broken), "permanent"},
		"cut off at a stop":               {ended(processor.ErrStopping), broken, "cancelled"},
		"cut off as the claim was lost":   {ended(processor.ErrLeaseLost), context.Canceled, "cancelled"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			j := &job{t: t, watched: metrics.New()}
			j.url = serve(t, j.watched)
			h := j.watched.Handler(handle(func(context.Context, model.Dataset) (any, error) { return nil, tt.err }))
			_, err := h.Handle(tt.ctx, model.Dataset{})
			equal(t, "error", err, tt.err)
			j.scrape().wants(t, map[string]float64{handlerCalls(tt.want): 1})
		})
	}
}

func BenchmarkATimedCall(b *testing.B) {
	h := handle(func(context.Context, model.Dataset) (any, error) { return nil, nil })
	for name, timed := range map[string]processor.Handler{"bare": h, "timed": metrics.New().Handler(h)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _ = timed.Handle(b.Context(), model.Dataset{})
			}
		})
	}
}
