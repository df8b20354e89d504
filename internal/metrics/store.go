package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windrow-go/windrow/model"
	"github.com/windrow-go/windrow/processor"
)

// databaseOps are the calls whose time is taken.
var databaseOps = []string{"check_out", "check_in", "renew", "release", "look_ahead"}

// How a call of the database ended.
const (
	resultOK        = "ok"
	resultError     = "error"     // no answer, or not one that helps
	resultRefused   = "refused"   // an answer: something is wrong with what was to be stored
	resultCancelled = "cancelled" // the worker had no use for the answer any more
)

// timedStore takes the time of the calls that a worker's speed hangs on. The others
// pass through.
type timedStore struct {
	processor.Store
	durations *prometheus.HistogramVec
}

// Store returns s with the time of its calls taken.
func (w *Worker) Store(s processor.Store) processor.Store {
	if w == nil {
		return s
	}
	return &timedStore{Store: s, durations: w.database}
}

func (s *timedStore) took(ctx context.Context, op string, begun time.Time, err error) {
	result := resultOK
	switch {
	case err == nil:
	case errors.Is(ctx.Err(), context.Canceled): // a deadline is the database's fault
		result = resultCancelled
	case errors.Is(err, model.ErrRefused), errors.Is(err, model.ErrEffect):
		result = resultRefused
	default:
		result = resultError
	}
	s.durations.WithLabelValues(op, result).Observe(time.Since(begun).Seconds())
}

func (s *timedStore) CheckOut(ctx context.Context, holder string, lease time.Duration, n int) ([]model.Claim, error) {
	begun := time.Now()
	claims, err := s.Store.CheckOut(ctx, holder, lease, n)
	s.took(ctx, "check_out", begun, err)
	return claims, err
}

func (s *timedStore) CheckIn(ctx context.Context, batch []model.CheckIn) (model.Receipt, error) {
	begun := time.Now()
	receipt, err := s.Store.CheckIn(ctx, batch)
	s.took(ctx, "check_in", begun, err)
	return receipt, err
}

func (s *timedStore) Renew(ctx context.Context, lease time.Duration, tickets []model.Ticket) ([]model.Ticket, error) {
	begun := time.Now()
	lost, err := s.Store.Renew(ctx, lease, tickets)
	s.took(ctx, "renew", begun, err)
	return lost, err
}

func (s *timedStore) Release(ctx context.Context, tickets []model.Ticket) error {
	begun := time.Now()
	err := s.Store.Release(ctx, tickets)
	s.took(ctx, "release", begun, err)
	return err
}

// Look is what an idle worker asks, once a minute.
func (s *timedStore) Look(ctx context.Context, self model.Worker, next time.Duration) (model.Agenda, time.Duration, error) {
	begun := time.Now()
	agenda, covered, err := s.Store.Look(ctx, self, next)
	s.took(ctx, "look_ahead", begun, err)
	return agenda, covered, err
}

// Agenda is what a worker asks between two looks, and one that has lost its database.
func (s *timedStore) Agenda(ctx context.Context) (model.Agenda, error) {
	begun := time.Now()
	agenda, err := s.Store.Agenda(ctx)
	s.took(ctx, "look_ahead", begun, err)
	return agenda, err
}
