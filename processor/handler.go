package processor

import (
	"context"
	"time"

	"github.com/windrow-go/windrow/model"
)

// Handler does the work of one row.
type Handler interface {
	// Handle processes one row and returns its result: a json.RawMessage is
	// stored as it is (and must not be changed afterwards), nil as null,
	// anything else by encoding/json. It is called from several goroutines at
	// once, and must return soon after ctx ends.
	Handle(ctx context.Context, row model.Dataset) (any, error)
}

// HandlerFunc makes a function a [Handler].
type HandlerFunc func(ctx context.Context, row model.Dataset) (any, error)

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, row model.Dataset) (any, error) {
	return f(ctx, row)
}

// Permanent marks err as hopeless: the row fails at once, without another try.
func Permanent(err error) error { return model.Permanent(err) }

// RetryAfter asks for another try no sooner than d from now. The try counts.
func RetryAfter(d time.Duration, err error) error { return model.RetryAfter(d, err) }
