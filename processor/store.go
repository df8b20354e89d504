package processor

import (
	"context"
	"time"

	"github.com/windrow-go/windrow/model"
)

// Store is what a [Processor] needs of a table. All methods may be called from
// several goroutines at once; none may keep the slices it is given. An error that
// is model.ErrUnavailable is outlived, one of CheckIn that is model.ErrRefused is
// blamed on a row, any other ends the worker.
type Store interface {
	// CheckOut hands out up to n rows to holder for lease. Fewer, or none, is
	// normal. It deals with conflicts itself.
	CheckOut(ctx context.Context, holder string, lease time.Duration, n int) ([]model.Claim, error)
	// CheckIn stores outcomes; with effects in one transaction, in which it runs them.
	// The same batch may be sent again when its answer was lost, or some of it was
	// refused. If an effect fails, nothing is stored, and the error is model.ErrEffect.
	CheckIn(ctx context.Context, batch []model.CheckIn) (model.Receipt, error)
	// Renew makes claims safe for lease from now, and returns those that are
	// held no more.
	Renew(ctx context.Context, lease time.Duration, tickets []model.Ticket) (lost []model.Ticket, err error)
	// Release gives rows back, their attempt refunded. Claims that are held no
	// more are passed over.
	Release(ctx context.Context, tickets []model.Ticket) error
	// Marked tells whether Mark has been called for m, by anybody.
	Marked(ctx context.Context, m model.Mark) (bool, error)
	// Mark stores m for good.
	Mark(ctx context.Context, m model.Mark) error
	// Spend adds what calls of holder's handler have cost, and returns the sum
	// over all workers that there have been.
	Spend(ctx context.Context, holder string, cost float64) (total float64, err error)
	// Report stores what the worker tells of itself. It will report again within
	// next; if that is negative, it ends.
	Report(ctx context.Context, w model.Worker, next time.Duration) error
	// Paused tells whether nothing is to be checked out for the time being.
	Paused(ctx context.Context) (bool, error)
	// Agenda tells what a worker that found nothing to check out waits for.
	Agenda(ctx context.Context) (model.Agenda, error)
	// Look is Report and Agenda in one: the whole of what a worker that waits asks. The
	// report is good for covered, which is next or longer.
	Look(ctx context.Context, w model.Worker, next time.Duration) (agenda model.Agenda, covered time.Duration, err error)
	// Wait returns nil after d, or sooner when rows were added or released, and
	// ctx's error when ctx ends.
	Wait(ctx context.Context, d time.Duration) error
}
