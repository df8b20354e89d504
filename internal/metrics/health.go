package metrics

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

const (
	// pingTimeout is how long the database may take to answer a probe.
	pingTimeout = 2 * time.Second
	// pingEvery is how long its answer is good for: probes, however many, do not
	// load it.
	pingEvery = time.Second
	// shutDown is how long a worker may take to end after its grace period: handlers
	// get 5 s to hear of their cancel, a check-out 5 s, outcomes 30 s to be stored,
	// and the machine may be busy.
	shutDown = time.Minute
)

// phase is where a process is in its life, as far as the probes care.
type phase int

const (
	beside  phase = iota // before and after it works rows
	working              // rows are worked, or the worker is coming to its end
	over                 // the worker has ended, and so should the process
)

// health is what the probes tell.
type health struct {
	mu      sync.Mutex
	phase   phase
	at      string // what a process that is beside does
	stopped time.Time
	most    time.Duration // how long the worker may take to stop

	pinging sync.Mutex // held while the database is asked, so that one asks for all
	db      Database
	explain func(error) string
	pinged  time.Time
	trouble string // that the last ping met
}

func newHealth() *health { return &health{at: "starting"} }

func (h *health) watch(db Database, explain func(error) string) {
	h.pinging.Lock()
	defer h.pinging.Unlock()
	h.db, h.explain = db, explain
}

func (h *health) doing(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.phase, h.at = beside, what
}

func (h *health) working(ctx context.Context, grace time.Duration) (ended func()) {
	h.mu.Lock()
	h.phase, h.stopped, h.most = working, time.Time{}, max(grace, 0)+shutDown
	h.mu.Unlock()
	forget := context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.stopped = time.Now()
	})
	return func() {
		forget()
		h.mu.Lock()
		defer h.mu.Unlock()
		h.phase = over
	}
}

// alive tells whether the process is worth keeping, and how it is.
func (h *health) alive() (reason string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.phase == over {
		return "the worker has ended", false
	}
	if h.phase == beside {
		return "alive: " + h.at, true
	}
	if h.stopped.IsZero() {
		return "alive: working", true
	}
	if late := time.Since(h.stopped); late > h.most {
		return fmt.Sprintf("the worker was told to stop %v ago and has not ended", late.Round(time.Second)), false
	}
	return "alive: stopping", true
}

// ready tells whether rows are worked and the database answers, or why not.
func (h *health) ready() (reason string, ok bool) {
	if reason := h.idle(); reason != "" {
		return reason, false
	}
	if trouble := h.asked(); trouble != "" {
		return "the database does not answer: " + oneLine(trouble), false
	}
	return "ready: working, and the database answers", true
}

// idle returns why no rows are worked, or "".
func (h *health) idle() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.phase == over:
		return "the worker has ended"
	case h.phase == beside:
		return "no rows are worked now: " + h.at
	case !h.stopped.IsZero():
		return "the worker is stopping"
	default:
		return ""
	}
}

// asked asks the database whether it is there, unless that was done a moment ago. The
// answer is for all who wait for it, so it does not hang on any one of their contexts.
// It returns what went wrong, or "".
func (h *health) asked() (trouble string) {
	h.pinging.Lock()
	defer h.pinging.Unlock()
	if !h.pinged.IsZero() && time.Since(h.pinged) < pingEvery {
		return h.trouble
	}
	ctx, cancel := context.WithTimeout(context.Background(), pingTimeout)
	defer cancel()
	switch err := h.db.Ping(ctx); {
	case err == nil:
		h.trouble = ""
	case ctx.Err() != nil:
		h.trouble = fmt.Sprintf("no word from it within %v", pingTimeout)
	default:
		h.trouble = h.explain(err)
	}
	h.pinged = time.Now()
	return h.trouble
}

// oneLine keeps a message to one line of sensible length.
func oneLine(text string) string {
	const most = 300
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
