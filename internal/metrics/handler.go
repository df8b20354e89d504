package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windrow-go/windrow/model"
	"github.com/windrow-go/windrow/processor"
)

// How a call of the handler ended.
const (
	outcomeOK          = "ok"          // with a result, a batch with one for each row
	outcomePartial     = "partial"     // a batch: with errors for some of its rows, or all
	outcomeError       = "error"       // with an error that is worth another try
	outcomePermanent   = "permanent"   // with one that is not
	outcomeUnavailable = "unavailable" // it could not serve
	outcomeTimeout     = "timeout"     // the time of the row, or batch, was up
	outcomeCancelled   = "cancelled"   // the lease was lost, or the worker stops
	outcomePanic       = "panic"       // with a panic, or the end of its goroutine
)

var handlerOutcomes = []string{
	outcomeOK, outcomePartial, outcomeError, outcomePermanent, outcomeUnavailable, outcomeTimeout, outcomeCancelled, outcomePanic,
}

// timedHandler takes the time of each call.
type timedHandler struct {
	processor.Handler
	durations map[string]prometheus.Observer // by outcome: to look a label up takes longer than to observe
}

// timedBatchHandler is a timedHandler that takes batches as well.
type timedBatchHandler struct {
	timedHandler
	batches processor.BatchHandler
}

// Handler returns h with the time of its calls taken; a BatchHandler stays one.
func (w *Worker) Handler(h processor.Handler) processor.Handler {
	if w == nil {
		return h
	}
	timed := timedHandler{Handler: h, durations: make(map[string]prometheus.Observer, len(handlerOutcomes))}
	for _, outcome := range handlerOutcomes {
		timed.durations[outcome] = w.handler.WithLabelValues(outcome)
	}
	if batches, can := h.(processor.BatchHandler); can {
		return &timedBatchHandler{timedHandler: timed, batches: batches}
	}
	return &timed
}

func (h *timedHandler) Handle(ctx context.Context, row model.Dataset) (any, error) {
	outcome, begun := outcomePanic, time.Now()
	defer func() { h.took(outcome, begun) }()
	result, err := h.Handler.Handle(ctx, row)
	outcome = outcomeOf(ctx, err)
	return result, err
}

func (h *timedBatchHandler) HandleBatch(ctx context.Context, rows []model.Dataset) ([]model.Reply, error) {
	outcome, begun := outcomePanic, time.Now()
	defer func() { h.took(outcome, begun) }()
	replies, err := h.batches.HandleBatch(ctx, rows)
	outcome = outcomeOf(ctx, err)
	for _, reply := range replies {
		if outcome == outcomeOK && reply.Err != nil {
			outcome = outcomePartial
		}
	}
	return replies, err
}

func (h *timedHandler) took(outcome string, begun time.Time) {
	h.durations[outcome].Observe(time.Since(begun).Seconds())
}

// outcomeOf classes what a call returned, as the processor does.
func outcomeOf(ctx context.Context, err error) string {
	cause := context.Cause(ctx)
	switch {
	case err == nil:
		return outcomeOK
	case errors.Is(cause, processor.ErrLeaseLost), errors.Is(cause, processor.ErrStopping):
		return outcomeCancelled
	case model.IsUnavailable(err):
		return outcomeUnavailable
	case model.IsPermanent(err):
		return outcomePermanent
	case errors.Is(cause, processor.ErrTimeout):
		return outcomeTimeout
	default:
		return outcomeError
	}
}
