package checkout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/internal/txn"
	"github.com/windrow-go/windrow/model"
)

// effect is what is to be done in the transaction that settles a row.
type effect func(tx *gorm.DB) error

func hasEffects(batch []model.CheckIn) bool {
	return slices.ContainsFunc(batch, func(in model.CheckIn) bool { return in.Effect != nil })
}

func appendEffect(due []effect, in model.CheckIn) []effect {
	if in.Effect == nil {
		return due
	}
	return append(due, in.Effect)
}

// settling is a check-in with effects: a transaction that is open between its
// statements, and that fails for reasons of the effects' own.
type settling struct {
	// transact is the kind of transaction, one of package txn's.
	transact func(ctx context.Context, db *gorm.DB, fn func(tx *gorm.DB) error) error
	// store stores the outcomes and returns the effects that are due by that.
	store func(tx *gorm.DB) ([]effect, error)
}

// run does it all, again from the start whenever it loses a race.
func (s settling) run(ctx context.Context, db *gorm.DB, opts Options) error {
	const op = "check in"
	err := txn.Retry(ctx, opts.policy(op), func() error { return s.try(ctx, db) })
	if errors.Is(err, model.ErrEffect) {
		return err
	}
	return explain(op, err)
}

func (s settling) try(ctx context.Context, db *gorm.DB) error {
	effects := false
	err := s.transact(ctx, db, func(tx *gorm.DB) error {
		due, err := s.store(tx)
		if err != nil {
			return err
		}
		effects = len(due) > 0
		for _, e := range due {
			if err := e.runIn(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil || !effects {
		return err
	}
	return blame(ctx, err)
}

// blame tells errors that are an effect's fault from those that may pass, when a
// transaction has failed in an effect or at its COMMIT. Those that may pass come
// back as they are.
func blame(ctx context.Context, err error) error {
	var state interface{ SQLState() string }
	switch {
	case ctx.Err() != nil:
		if errors.Is(err, ctx.Err()) {
			return err
		}
		return errors.Join(ctx.Err(), err)
	case errors.Is(err, model.ErrEffect):
		return err
	case errors.Is(err, pgx.ErrTxCommitRollback):
		return effectError(errWentOn)
	case errors.As(err, &state) && state.SQLState() == idleInTransaction:
		return effectError(fmt.Errorf("it left the transaction without a statement for more than %v: %w", mostIdle, err))
	case isPassing(err):
		return err
	}
	return effectError(err)
}

// mostIdle is how long an effect may keep the transaction, and with it locks, open
// on PostgreSQL without giving it a statement; idleInTransaction is the SQLSTATE
// when it does.
const (
	mostIdle          = 15 * time.Second
	idleInTransaction = "25P03"
)

var errWentOn = errors.New("it went on after a statement that had failed, and the server rolled everything back")

// effectError makes an error the effect's.
func effectError(cause error) error { return fmt.Errorf("%w: %w", model.ErrEffect, cause) }

// runIn runs the effect in the transaction tx.
func (e effect) runIn(ctx context.Context, tx *gorm.DB) error {
	own := &effectPool{tx: tx.Statement.ConnPool}
	err := e.call(ctx, own.session(ctx, tx))
	broken := own.close()
	switch {
	case broken != nil && isPassing(broken): // whatever the effect has made of it
		return broken
	case broken != nil && err == nil:
		return fmt.Errorf("it went on after a failure: %w", broken)
	case broken != nil && errors.Is(err, context.Canceled):
		return broken
	case err != nil && isUnavailable(err) && own.answers(ctx):
		return effectError(err) // some other service is out of the effect's reach
	}
	return err
}

// isPassing tells whether err may pass, and is nobody's fault.
func isPassing(err error) bool {
	return txn.ReasonOf(err) != txn.ReasonNone || isUnavailable(err)
}

func isUnavailable(err error) bool {
	return txn.ReasonOf(err) == txn.ReasonNone && errors.Is(database.Translate(err), model.ErrUnavailable)
}

var errGoexit = errors.New("it ended its goroutine (runtime.Goexit) instead of returning")

// effectGrace is how long an effect may go on after its context has ended, when
// all its statements fail.
const effectGrace = 5 * time.Second

// call runs the effect on a goroutine of its own, which it may end.
func (e effect) call(ctx context.Context, tx *gorm.DB) error {
	ended := make(chan error, 1)
	go func() {
		err := errGoexit
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v", p)
			}
			ended <- err
		}()
		err = e(tx)
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(effectGrace):
		return fmt.Errorf("%w; the effect goes on all the same", ctx.Err())
	}
}
