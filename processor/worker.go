package processor

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

// maxResults bounds the results that are finished and not stored, in bytes: slots
// wait for room. Small ones don't count, as the number of rows bounds them.
const (
	maxResults  = 64 << 20
	smallResult = 4 << 10
)

// worker is one run of a Processor: what its parts share.
type worker struct {
	store   Store
	handler Handler
	opts    Options
	log     *zap.Logger
	counts  *counts
	base    time.Time // the worker's clock starts here

	batches BatchHandler // nil: rows one by one
	hand    *hand
	outage  *outage
	breaker *breaker
	pulse   *pulse
	limiter *rate.Limiter // nil: no limit
	limit   int           // the most rows in hand
	buffer  chan *held    // both hold limit rows, so that sending never blocks
	settled chan *held

	share   *semaphore.Weighted // Concurrency: 1 an ordinary row, all a row alone
	results *semaphore.Weighted // maxResults

	wake    chan struct{} // tells the claimer that there may be room
	low     atomic.Int64  // settling a row pokes wake when no more than this are unfinished
	sparse  atomic.Bool   // outcomes come one by one: the committer needn't wait for more
	stir    atomic.Pointer[context.CancelFunc]
	spilled atomic.Bool   // the buffer was given back: the measured times are wrong
	napping atomic.Bool   // the claimer waits for work
	cutOff  atomic.Int64  // when the handlers were cancelled; 0: they weren't
	check   chan struct{} // asks the renewer for a pass

	halt context.CancelCauseFunc // stops the worker in good order, and says why

	failures, losses, remarks *limited
}

func newWorker(store Store, handler Handler, opts Options, c *counts) *worker {
	limit := max(2*opts.MaxBatch, 2*opts.Concurrency*opts.BatchRows)
	log := opts.Logger.With(zap.String("holder", opts.Holder))
	w := &worker{
		store:    store,
		handler:  handler,
		opts:     opts,
		log:      log,
		counts:   c,
		base:     time.Now().Add(-time.Nanosecond), // so that 0 is never now
		hand:     newHand(),
		outage:   newOutage(log),
		breaker:  newBreaker(log, opts.Concurrency),
		limit:    limit,
		buffer:   make(chan *held, limit),
		settled:  make(chan *held, limit),
		share:    semaphore.NewWeighted(int64(opts.Concurrency)),
		results:  semaphore.NewWeighted(maxResults),
		wake:     make(chan struct{}, 1),
		check:    make(chan struct{}, 1),
		failures: newLimited(log, "more rows failed"),
		losses:   newLimited(log, "more rows lost"),
		remarks:  newLimited(log, "more results made safe"),
	}
	w.pulse = &pulse{worker: w, awake: make(chan struct{}, 1)}
	if opts.BatchRows > 1 {
		w.batches = handler.(BatchHandler) // as checked by Run
	}
	if opts.Rate > 0 {
		w.limiter = rate.NewLimiter(rate.Limit(opts.Rate), opts.BatchRows)
	}
	return w
}

// run starts the parts, waits for a reason to stop, and stops them.
func (w *worker) run(ctx context.Context) error {
	began := time.Now()
	w.log.Info("working",
		zap.Int("concurrency", w.opts.Concurrency),
		zap.Duration("lease", w.opts.Lease))

	stopping, halt := context.WithCancelCause(ctx)
	defer halt(nil)
	w.halt = halt

	if w.opts.MaxCost > 0 {
		if err := w.spendInAll(ctx, 0); err != nil {
			return err
		}
	}
	p := newParts(w, stopping)
	p.start(stopping)
	<-stopping.Done()
	err := errors.Join(reason(ctx, stopping), p.stop())
	w.pulse.end()

	w.flushLogs(true)
	s := w.counts.snapshot(w.hand)
	w.log.Info("stopped",
		zap.Duration("after", time.Since(began)),
		zap.Int64("claimed", s.Claimed),
		zap.Int64("done", s.Done),
		zap.Int64("failed", s.Failed),
		zap.Int64("retried", s.Retried),
		zap.Int64("released", s.Released),
		zap.Int64("lost", s.Lost),
		zap.Int("stuck", s.Stuck))
	return err
}

// reason returns the error that stopped the worker, if it was one.
func reason(ctx, stopping context.Context) error {
	cause := context.Cause(stopping)
	if errors.Is(cause, errEmpty) || ctx.Err() != nil && errors.Is(cause, context.Cause(ctx)) {
		return nil
	}
	return cause
}

// now is the worker's own clock: monotonic, and never compared with another's.
func (w *worker) now() time.Duration { return time.Since(w.base) }

// settle hands a row whose fate is decided to the committer; each row in hand
// gets here exactly once. It waits while too many results are unstored.
func (w *worker) settle(h *held) {
	size, alone := h.size(), h.row.Losses > 0
	h.row.Data = nil
	if n := len(h.outcome.Result); n > smallResult {
		h.reserved = int64(min(n, maxResults))
		_ = w.results.Acquire(context.Background(), h.reserved) // the committer outlives all slots
	}
	w.settled <- h
	if w.hand.finish(size, alone) <= w.low.Load() {
		poke(w.wake)
	}
}

// spill takes every row out of the buffer, to be released.
func (w *worker) spill() {
	for {
		select {
		case h := <-w.buffer:
			w.giveBack(h)
		default:
			return
		}
	}
}

// giveBack settles a row that has not been started.
func (w *worker) giveBack(h *held) {
	h.fate = release
	if h.lost.Load() {
		h.fate = drop
	}
	h.end()
	w.breaker.leave(h)
	w.settle(h)
}

// stirUp makes an idle claimer look again.
func (w *worker) stirUp() {
	if cancel := w.stir.Load(); cancel != nil {
		(*cancel)()
	}
}

func (w *worker) flushLogs(last bool) {
	w.failures.flush(last)
	w.losses.flush(last)
	w.remarks.flush(last)
}
