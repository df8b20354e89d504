package processor

import (
	"sync"
	"time"

	"go.uber.org/zap"
)

// limited keeps a kind of event from flooding the log: ten a second are let
// through, the rest is counted and told once the second is over.
type limited struct {
	log     *zap.Logger
	summary string // the message that tells how many more there were

	mu    sync.Mutex
	since time.Time
	n     int
}

const eventsPerSecond = 10

func newLimited(log *zap.Logger, summary string) *limited {
	return &limited{log: log, summary: summary}
}

// allow tells whether the next event should be logged.
func (l *limited) allow() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.since) >= time.Second {
		l.tellRest()
		l.since = now
	}
	l.n++
	return l.n <= eventsPerSecond
}

// flush tells how many were held back, if their second is over or last is true.
func (l *limited) flush(last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last || time.Since(l.since) >= time.Second {
		l.tellRest()
	}
}

// empty tells whether none is held back.
func (l *limited) empty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n <= eventsPerSecond
}

func (l *limited) tellRest() {
	if more := l.n - eventsPerSecond; more > 0 {
		l.log.Warn(l.summary, zap.Int("rows", more))
	}
	l.n = 0
}
