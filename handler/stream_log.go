package handler

import (
	"bytes"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	// loggedLines is how many lines about children are logged in a second.
	loggedLines = 10
	// loggedBytes is how much of a line of a child's is logged.
	loggedBytes = 1 << 10
)

// childLog logs what no error of a row tells of: what children write besides
// their answers, and how they die.
type childLog struct {
	logger *zap.Logger

	mu      sync.Mutex
	second  time.Time
	logged  int // in this second
	skipped int // since the last one that was logged
}

func (l *childLog) line(line []byte) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return
	}
	if skipped, ok := l.allow(); ok {
		text := strings.ToValidUTF8(string(line[:min(len(line), loggedBytes)]), "\uFFFD")
		l.logger.Info("a stream's child wrote a line that is no answer to a row in flight",
			zap.String("line", text), skipped)
	}
}

func (l *childLog) death(reason error, answers int64) {
	if skipped, ok := l.allow(); ok {
		l.logger.Warn("a stream's child ended", zap.NamedError("reason", reason), zap.Int64("answers", answers), skipped)
	}
}

// allow tells whether there is room in this second, and how many did not find any.
func (l *childLog) allow() (skipped zap.Field, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.second) >= time.Second {
		l.second, l.logged = now, 0
	}
	if l.logged == loggedLines {
		l.skipped++
		return zap.Skip(), false
	}
	l.logged++
	if l.skipped == 0 {
		return zap.Skip(), true
	}
	skipped, l.skipped = zap.Int("skipped", l.skipped), 0
	return skipped, true
}

// close tells how much was not logged since the last that was.
func (l *childLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.skipped > 0 {
		l.logger.Info("more about a stream's children was not logged", zap.Int("skipped", l.skipped))
	}
	l.skipped = 0
}
