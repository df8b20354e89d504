package schedule

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// tail keeps the end of what is written to it.
type tail struct {
	limit int // bytes

	mu    sync.Mutex
	kept  []byte // up to twice the limit, so that it is seldom moved
	total int64
}

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total += int64(len(p))
	t.kept = append(t.kept, p[max(0, len(p)-t.limit):]...)
	if len(t.kept) > 2*t.limit {
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-t.limit:]...)
	}
	return len(p), nil
}

// String is the end as text, fit for a text column: what is no UTF-8 or a NUL becomes
// U+FFFD. A first line tells how much was cut.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.ToValidUTF8(string(t.kept[max(0, len(t.kept)-t.limit):]), "\uFFFD")
	text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	if t.total <= int64(t.limit) && len(text) <= t.limit {
		return text
	}
	begin := max(0, len(text)-t.limit)
	for begin < len(text) && !utf8.RuneStart(text[begin]) {
		begin++
	}
	return fmt.Sprintf("[the end of %d bytes]\n", t.total) + text[begin:]
}
