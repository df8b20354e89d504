package handler

import (
	"strings"
	"sync"
	"unicode/utf8"
)

// tailBytes is how much of the end of a command's stderr is kept for its error.
const tailBytes = 2 << 10

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
	cut  bool
}

// Write keeps the end of all that was written; it never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	if len(p) > tailBytes {
		p, t.cut = p[len(p)-tailBytes:], true
	}
	if drop := len(t.kept) + len(p) - tailBytes; drop > 0 {
		t.kept, t.cut = append(t.kept[:0], t.kept[drop:]...), true
	}
	t.kept = append(t.kept, p...)
	return n, nil
}

// reset forgets what was written.
func (t *tail) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept, t.cut = t.kept[:0], false
}

// String returns the end as text: no rune is cut in two, and what is no UTF-8
// becomes U+FFFD.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept := t.kept
	for t.cut && len(kept) > 0 && !utf8.RuneStart(kept[0]) {
		kept = kept[1:]
	}
	text := strings.TrimSpace(strings.ToValidUTF8(string(kept), "\uFFFD"))
	if t.cut {
		return "…" + text
	}
	return text
}
