package processor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/windrow-go/windrow/internal/jsonb"
	"github.com/windrow-go/windrow/model"
)

// maxErrorText bounds the error text stored with a row, in bytes.
const maxErrorText = 8 << 10

// judge turns what a handler returned into what becomes of the row.
func (s *slots) judge(ctx context.Context, h *held, result any, err error) {
	if cost := model.AnswerOf(result).Cost; cost > 0 && !math.IsInf(cost, 1) {
		h.cost = cost
	} else if cost != 0 && err == nil {
		err = model.Permanent(fmt.Errorf("the cost %v of the answer is not a number of zero or more", cost))
	}
	switch {
	case err == nil:
		h.called = true
		s.breaker.success(s.now())
		s.accept(h, result)
	case context.Cause(ctx) == ErrStopping && !model.IsPermanent(err):
		h.fate = release
	default:
		h.called = true
		s.reject(h, s.explain(ctx, err))
	}
}

// accept stores a result, or fails the row if that is impossible: the same result
// would come again.
func (w *worker) accept(h *held, result any) {
	answer := model.AnswerOf(result)
	h.discard = answer.Discard
	raw, remarks, err := encode(answer.Result)
	if err != nil {
		w.reject(h, model.Permanent(fmt.Errorf("the result can't be stored: %w", err)))
		return
	}
	w.decide(h, model.Outcome{Verdict: model.VerdictDone, Result: raw, Effect: answer.Effect})
	if remarks == "" {
		return
	}
	h.outcome.Error = jsonb.SafeText("result made safe: "+remarks, maxErrorText)
	if w.remarks.allow() {
		w.log.Warn("result made safe", zap.Int64("id", h.ticket.ID), zap.String("what", remarks))
	}
}

// encode makes a result a JSON value that any database can hold, and tells what had
// to be changed in it.
func encode(result any) (raw json.RawMessage, remarks string, err error) {
	switch r := result.(type) {
	case nil:
		return nil, "", nil
	case json.RawMessage:
		raw = r
	default:
		if raw, err = json.Marshal(result); err != nil {
			return nil, "", err
		}
	}
	if raw == nil {
		return nil, "", nil
	}
	safe, remarks, err := jsonb.Safe(raw)
	if text, is := result.(string); is && !utf8.ValidString(text) { // json.Marshal has mended that without a word
		remarks = strings.TrimPrefix(remarks+"; invalid UTF-8 replaced by U+FFFD", "; ")
	}
	return safe, remarks, err
}

// explain gives an error that only says that time is up, words that say more.
func (s *slots) explain(ctx context.Context, err error) error {
	timeUp := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrTimeout)
	if timeUp && context.Cause(ctx) == ErrTimeout {
		return timedOut{err, s.opts.Timeout}
	}
	return err
}

// timedOut keeps what a handler may have said beside its error: Permanent or
// RetryAfter.
type timedOut struct {
	error
	limit time.Duration
}

func (t timedOut) Error() string { return fmt.Sprintf("timed out after %v", t.limit) }
func (t timedOut) Unwrap() error { return t.error }

// reject ends a try that went wrong: with another one later, or for good, or, if it
// is the handler's fault, as if it had not been made.
func (w *worker) reject(h *held, err error) {
	h.failure = jsonb.SafeText(err.Error(), maxErrorText)
	if h.failure == "" {
		h.failure = "an error without a text"
	}
	if model.IsPermanent(err) {
		w.breaker.success(w.now())
		w.charge(h, err)
		return
	}
	blamed, opened := w.breaker.blames(h, err)
	if opened {
		w.spilled.Store(true)
		w.spill()
	}
	if blamed {
		w.refund(h, err)
		return
	}
	w.charge(h, err)
}

// refund gives a row back whose handler could not serve.
func (w *worker) refund(h *held, err error) {
	h.blamed = true
	if model.IsUnavailable(err) {
		h.called = false // the breaker is for that, not the budget
	}
	delay, asked := model.RetryDelay(err)
	if !asked {
		delay = backOff(firstProbe, longestProbe, int(h.row.Refunds)+1)
	}
	w.decide(h, model.Outcome{Verdict: model.VerdictUnavailable, Error: h.failure, Delay: max(delay, 0)})
}

// charge makes a failure one of the row's tries.
func (w *worker) charge(h *held, err error) {
	if model.IsPermanent(err) || h.tries() >= w.opts.MaxAttempts {
		w.decide(h, model.Outcome{Verdict: model.VerdictFailed, Error: h.failure})
		return
	}
	delay, asked := model.RetryDelay(err)
	if !asked {
		delay = backOff(w.opts.RetryMin, w.opts.RetryMax, h.tries())
	}
	w.decide(h, model.Outcome{Verdict: model.VerdictRetry, Error: h.failure, Delay: max(delay, 0)})
}

// failUnstarted fails a row that has killed its workers too often to be tried.
func (s *slots) failUnstarted(h *held) {
	text := fmt.Sprintf("its worker was lost %d times while processing this row", h.row.Losses)
	s.decide(h, model.Outcome{Verdict: model.VerdictFailed, Error: text})
	h.failure = text
	s.logFailure(h)
	h.end()
	s.settle(h)
}

func (w *worker) decide(h *held, o model.Outcome) {
	o.Version = w.opts.Version
	h.fate, h.outcome = checkIn, o
}

// final tells whether the outcome ends the row's round.
func (h *held) final() bool { return h.outcome.Verdict == model.VerdictFailed }

// backOff returns a random delay below a ceiling that starts at least and doubles
// with each try, up to most. The whole range is used ("full jitter"), so that
// rows that failed together don't come back together.
func backOff(least, most time.Duration, tries int) time.Duration {
	ceiling := least
	for ; tries > 1 && ceiling < most; tries-- {
		ceiling *= 2
		if ceiling <= 0 { // overflow
			ceiling = most
		}
	}
	return rand.N(min(ceiling, most))
}
