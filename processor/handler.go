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

// BatchHandler is a [Handler] that can take many rows at once, for services that
// label or embed lists. It gets up to [Options].BatchRows of them.
type BatchHandler interface {
	Handler
	// HandleBatch answers each row, in the order of rows. An error is one of all
	// rows: they are halved and tried again, until those at fault are alone. Only
	// an error of a single row, or one in its reply, is charged to it.
	HandleBatch(ctx context.Context, rows []model.Dataset) ([]model.Reply, error)
}

// BatchHandlerFunc makes a function a [BatchHandler].
type BatchHandlerFunc func(ctx context.Context, rows []model.Dataset) ([]model.Reply, error)

// HandleBatch calls f.
func (f BatchHandlerFunc) HandleBatch(ctx context.Context, rows []model.Dataset) ([]model.Reply, error) {
	return f(ctx, rows)
}

// Handle calls f with the one row.
func (f BatchHandlerFunc) Handle(ctx context.Context, row model.Dataset) (any, error) {
	replies, err := f(ctx, []model.Dataset{row})
	if err == nil {
		err = fits(replies, 1)
	}
	if err != nil {
		return nil, err
	}
	return replies[0].Result, replies[0].Err
}

// Permanent marks err as hopeless: the row fails at once, without another try.
func Permanent(err error) error { return model.Permanent(err) }

// RetryAfter asks for another try no sooner than d from now. The try counts, unless
// err is marked by [Unavailable] as well.
func RetryAfter(d time.Duration, err error) error { return model.RetryAfter(d, err) }

// Unavailable says that the handler can't serve now, whatever the row. The row goes
// back without losing an attempt, and the worker slows down until the handler
// serves again. A row that meets this again and again while others succeed pays
// from the third time on.
func Unavailable(err error) error { return model.Unavailable(err) }
