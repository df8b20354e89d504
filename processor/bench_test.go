package processor_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windrow-go/windrow/model"
	"github.com/windrow-go/windrow/processor"
)

// endless hands out n rows in all, at no cost, so that what is measured is the
// processor.
type endless struct {
	left atomic.Int64
	data json.RawMessage
}

func (e *endless) CheckOut(_ context.Context, holder string, _ time.Duration, n int) ([]model.Claim, error) {
	left := e.left.Add(-int64(n))
	n = int(min(int64(n), max(left+int64(n), 0)))
	claims := make([]model.Claim, n)
	for i := range claims {
		claims[i].ID, claims[i].Data, claims[i].Attempts, claims[i].Holder = left+int64(i), e.data, 1, holder
	}
	return claims, nil
}

func (e *endless) CheckIn(context.Context, []model.CheckIn) (r model.Receipt, err error) {
	return r, nil
}

func (e *endless) Renew(context.Context, time.Duration, []model.Ticket) ([]model.Ticket, error) {
	return nil, nil
}

func (e *endless) Release(context.Context, []model.Ticket) error { return nil }

func (*endless) Marked(context.Context, model.Mark) (bool, error) { return false, nil }

func (*endless) Spend(context.Context, string, float64) (float64, error) { return 0, nil }

func (*endless) Mark(context.Context, model.Mark) error { return nil }

func (*endless) Report(context.Context, model.Worker, time.Duration) error { return nil }

func (*endless) Paused(context.Context) (bool, error) { return false, nil }

func (e *endless) Agenda(context.Context) (model.Agenda, error) {
	return model.Agenda{Next: -1}, nil
}

func (e *endless) Look(ctx context.Context, _ model.Worker, next time.Duration) (model.Agenda, time.Duration, error) {
	agenda, err := e.Agenda(ctx)
	return agenda, next, err
}

func (e *endless) Wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(min(d, time.Millisecond)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// The overhead per row, all of claiming, starting, storing: about 1.2 µs on two
// cores.
func BenchmarkNoOpRow(b *testing.B) {
	result := json.RawMessage(`{"a":1,"b":[true,false],"c":"some text"}`)
	for _, c := range []struct {
		name    string
		opts    processor.Options
		handler processor.HandlerFunc
	}{
		{name: "null", handler: func(context.Context, model.Dataset) (any, error) { return nil, nil }},
		{name: "result", handler: func(context.Context, model.Dataset) (any, error) { return result, nil }},
		{name: "slots=1", opts: processor.Options{Concurrency: 1}, handler: func(context.Context, model.Dataset) (any, error) { return nil, nil }},
		{name: "timeout", opts: processor.Options{Timeout: time.Minute}, handler: func(context.Context, model.Dataset) (any, error) { return nil, nil }},
	} {
		b.Run(c.name, func(b *testing.B) {
			store := &endless{data: json.RawMessage(`{"origin":"ABC","delay":12}`)}
			store.left.Store(int64(b.N))
			c.opts.UntilEmpty = true
			p := processor.New(store, c.handler, c.opts)
			b.ReportAllocs()
			if err := p.Run(b.Context()); err != nil {
				b.Fatal(err)
			}
			if done := p.Stats().Done; done != int64(b.N) {
				b.Fatalf("%d rows done, want %d", done, b.N)
			}
		})
	}
}
