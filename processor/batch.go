package processor

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/windrow-go/windrow/model"
)

// gather adds to first what else is there for one call of a BatchHandler.
func (s *slots) gather(stopping context.Context, first *held) []*held {
	rows := []*held{first}
	timer := time.NewTimer(s.opts.BatchWait)
	defer timer.Stop()
	for len(rows) < s.opts.BatchRows {
		select {
		case h := <-s.buffer:
			if stopping.Err() != nil { // both were ready
				s.giveBack(h)
				return rows
			}
			if h.row.Losses > 0 { // it must run alone
				s.buffer <- h
				return rows
			}
			if !s.throttle(stopping) || h.lost.Load() || !s.secure(stopping, h) {
				s.giveBack(h)
				continue
			}
			rows = append(rows, h)
		case <-timer.C:
			return rows
		case <-stopping.Done():
			return rows
		}
	}
	return rows
}

// tryAll calls the handler for several rows and settles them, whatever happens.
// While a call fails as a whole, it is made again for each half: only a row that
// fails alone is charged.
func (s *slots) tryAll(me *slot, rows []*held) {
	if len(rows) == 1 {
		apart(func() { s.try(me, rows[0]) })
		return
	}
	ctx, cancel := s.context(me.own, rows[0])
	data := make([]model.Dataset, len(rows))
	for i, h := range rows {
		data[i] = *h.row
	}
	begun := s.now()
	s.beginAll(&attempt{slot: me, rows: len(rows)}, rows, begun, cancel)
	replies, err := s.callAll(ctx, rows[0], data)
	spent := int64(s.now()-begun) / int64(len(rows))
	defer cancel(nil)
	if err != nil && !s.blameless(ctx, err) && s.resume(rows, spent) {
		s.log.Debug("a batch failed; its halves are tried", zap.Int("rows", len(rows)), zap.Error(err))
		half := len(rows) / 2
		s.tryAll(me, rows[:half])
		s.tryAll(me, rows[half:])
		return
	}
	for i, h := range rows {
		reply := model.Reply{Err: model.Unavailable(err)} // whose fault it was isn't known
		if err == nil {
			reply = replies[i]
		}
		if !h.back() {
			forget(reply.Result, reply.Err)
			s.afterStuck(me, h)
			continue
		}
		s.conclude(ctx, h, reply)
		s.after(h, spent)
	}
}

// beginAll marks rows as running. Their common context ends when all of them are
// lost.
func (s *slots) beginAll(a *attempt, rows []*held, now time.Duration, cancel context.CancelCauseFunc) {
	var left atomic.Int64
	left.Store(int64(len(rows)))
	s.hand.busy.Add(int64(len(rows)))
	for _, h := range rows {
		h.begin(a, now, func(cause error) {
			if left.Add(-1) == 0 {
				cancel(cause)
			}
		})
	}
}

// apart runs f in a goroutine of its own: should the handler end that, the other
// rows of its batch go on.
func apart(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// callAll makes the call, whatever becomes of it.
func (s *slots) callAll(ctx context.Context, first *held, rows []model.Dataset) (replies []model.Reply, err error) {
	apart(func() {
		err = errGoexit
		defer func() {
			if panicked := recover(); panicked != nil {
				err = s.panicked(first, panicked)
			}
		}()
		replies, err = s.batches.HandleBatch(s.marking(ctx), rows)
		if err == nil {
			err = fits(replies, len(rows))
		}
	})
	return replies, err
}

// fits tells whether there is an answer for each of n rows.
func fits(replies []model.Reply, n int) error {
	if len(replies) != n {
		return fmt.Errorf("the handler was given %d rows and answered %d", n, len(replies))
	}
	return nil
}

// blameless tells whether an error of a whole batch says nothing of its rows: the
// handler can't serve, or the worker cut it off.
func (s *slots) blameless(ctx context.Context, err error) bool {
	cause := context.Cause(ctx)
	return model.IsUnavailable(err) || errors.Is(cause, ErrStopping) || errors.Is(cause, ErrLeaseLost)
}

// resume takes rows whose batch has failed back from running to waiting. It returns
// false if that can't be, as the call was found stuck before it returned.
func (s *slots) resume(rows []*held, spent int64) bool {
	for i, h := range rows {
		if !h.state.CompareAndSwap(running, waiting) {
			for _, back := range rows[:i] {
				back.state.Store(running)
			}
			return false
		}
	}
	s.counts.handlerTime.Add(spent * int64(len(rows)))
	s.hand.busy.Add(-int64(len(rows)))
	return true
}

// conclude judges one row's reply. Code of the user's runs here as well: the Error
// method of its error and the MarshalJSON of its result.
func (s *slots) conclude(ctx context.Context, h *held, reply model.Reply) {
	defer func() {
		if panicked := recover(); panicked != nil {
			s.crashed(h, panicked)
		}
	}()
	s.judge(ctx, h, reply.Result, reply.Err)
}
