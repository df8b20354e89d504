package processor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"go.uber.org/zap"

	"github.com/windrow-go/windrow/internal/jsonb"
	"github.com/windrow-go/windrow/model"
)

// try calls the handler for one row and settles the row, whatever happens. All
// code of the user's runs inside: Handle, but also the Error method of its error
// and the MarshalJSON of its result.
func (s *slots) try(me *slot, h *held) {
	ctx, cancel := s.context(me.own, h)
	begun := s.now()
	s.hand.busy.Add(1)
	row := *h.row // while it is the slot's: should the handler get stuck, it is settled without it
	h.begin(&attempt{slot: me, rows: 1}, begun, cancel)
	mine, judged := false, false
	defer func() {
		if !judged {
			panicked := recover()
			if mine = mine || h.back(); mine {
				s.crashed(h, panicked)
			}
		}
		cancel(nil)
		if mine {
			s.after(h, int64(s.now()-begun))
		} else {
			s.afterStuck(me, h)
		}
	}()
	result, err := s.handler.Handle(s.marking(ctx), row)
	if mine = h.back(); mine {
		s.judge(ctx, h, result, err)
	} else {
		forget(result, err)
	}
	judged = true
}

// afterStuck notes that a handler that was not waited for has returned after all.
func (s *slots) afterStuck(me *slot, h *held) {
	s.hand.busy.Add(-1)
	s.hand.returned(h)
	s.abandon(me)
	s.log.Info("a stuck handler has returned", zap.Int64("id", h.ticket.ID))
}

// forget tells a handler that its result is not stored.
func forget(result any, err error) {
	if discard := model.AnswerOf(result).Discard; err == nil && discard != nil {
		(&held{discard: discard}).dropPrepared()
	}
}

// context makes the context of one call of the handler.
func (s *slots) context(own context.Context, h *held) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(own)
	if s.opts.Timeout == 0 {
		return ctx, cancel
	}
	limited, stopTimer := context.WithTimeoutCause(ctx, s.opts.Timeout, ErrTimeout)
	return limited, func(cause error) {
		cancel(cause)
		stopTimer()
	}
}

// after counts the call and settles the row.
func (s *slots) after(h *held, spent int64) {
	if h.lost.Load() {
		h.fate, h.called = drop, false
	}
	s.breaker.leave(h)
	s.counts.handlerTime.Add(spent)
	s.counts.calls.Add(1)
	if h.failure != "" && h.called {
		s.counts.failedCalls.Add(1)
		s.logFailure(h)
	}
	s.hand.busy.Add(-1)
	h.end()
	s.settle(h)
}

// crashed makes a panic, or the end of the goroutine, an error of the row. The
// stack goes to the log only.
func (s *slots) crashed(h *held, panicked any) {
	err := errGoexit
	if panicked != nil {
		err = s.panicked(h, panicked)
	}
	h.called = true
	s.reject(h, err)
}

// panicked logs the stack of a panic and makes an error of it.
func (s *slots) panicked(h *held, value any) error {
	if s.failures.allow() {
		s.log.Warn("the handler panicked",
			zap.Int64("id", h.ticket.ID),
			zap.ByteString("stack", shortStack()))
	}
	return fmt.Errorf("panic: %v", value)
}

var errGoexit = errors.New("the handler ended its goroutine (runtime.Goexit)")

// shortStack returns the stack from the panic on, without how it was caught.
func shortStack() []byte {
	const most = 4 << 10
	stack := debug.Stack()
	if i := bytes.LastIndex(stack, []byte("\npanic(")); i >= 0 {
		stack = stack[i+1:]
	}
	return stack[:min(most, len(stack))]
}

func (w *worker) logFailure(h *held) {
	if h.blamed || !w.failures.allow() {
		return
	}
	w.log.Warn("row failed",
		zap.Int64("id", h.ticket.ID),
		zap.Int("try", h.tries()),
		zap.Bool("final", h.final()),
		zap.String("error", jsonb.SafeText(h.failure, 500)))
}
