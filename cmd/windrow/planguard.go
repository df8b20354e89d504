package main

import (
	"context"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/windrow-go/windrow/checkout"
)

const (
	// plansEvery is the least time between two looks at a worker's plans, and so
	// between two warnings of one fault; up to a quarter of it comes on top, so that
	// a fleet doesn't look all at once.
	plansEvery = time.Hour
	// plansTimeout bounds one look.
	plansTimeout = 30 * time.Second
)

// planChecker is a store whose statements may be planned otherwise than meant.
//
// SQLite's store is none. Its planner sees a statement's text and the file's
// statistics, never values, settings or how often the statement was run, so that
// the plans which the tests hold are those of every file; and a file is windrow's
// alone: nobody rebuilds its indexes.
type planChecker interface {
	CheckPlans(ctx context.Context) ([]checkout.PlanFault, error)
}

// guardPlans looks at the plans of the worker's statements at once and then about
// every hour, until ctx ends, and warns of those that are not as meant. A look that
// fails is of no consequence for the worker.
func guardPlans(ctx context.Context, s planChecker, log *zap.Logger) {
	for {
		checkPlans(ctx, s, log)
		select {
		case <-ctx.Done():
			return
		case <-time.After(plansEvery + rand.N(plansEvery/4)):
		}
	}
}

func checkPlans(ctx context.Context, s planChecker, log *zap.Logger) {
	limited, cancel := context.WithTimeout(ctx, plansTimeout)
	defer cancel()
	faults, err := s.CheckPlans(limited)
	if err != nil {
		log.Debug("the plans of the statements could not be looked at", zap.Error(err))
		return
	}
	for _, fault := range faults {
		log.Warn("the server does not plan a statement as it is meant, which makes workers slow",
			zap.String("statement", fault.Statement), zap.String("found", fault.Found), zap.String("cure", fault.Cure))
	}
}
