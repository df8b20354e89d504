package jsonb

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Safe makes raw fit for a jsonb column: the NUL character, surrogates that stand
// alone and bytes that aren't UTF-8 become U+FFFD, and remarks says which and how
// often, such as "2 NUL characters replaced by U+FFFD". Where there is nothing to
// replace it returns raw itself and no remarks. What can't be made safe (no JSON,
// NaN, a number too large, too deep, too big) is an [*Error].
func Safe(raw []byte) (out json.RawMessage, remarks string, err error) {
	c := checker{src: raw, lenient: true}
	if !c.document() {
		return nil, "", c.err
	}
	if c.found == (faults{}) {
		return raw, "", nil
	}
	out = scrub(raw, c.found.bad)
	if len(out) > MaxBytes { // three bytes stand where one stood
		return nil, "", Check(out)
	}
	return out, c.found.String(), nil
}

// scrub copies valid JSON, the faults in its strings replaced. bad is the number
// of bytes in it that aren't UTF-8.
func scrub(raw []byte, bad int) []byte {
	out := make([]byte, 0, len(raw)+bad*(utf8.UTFMax-1))
	for i := 0; i < len(raw); {
		n := len(`\x`)
		switch r, size := utf8.DecodeRune(raw[i:]); {
		case r == utf8.RuneError && size == 1:
			out = append(out, "\ufffd"...)
			i++
			continue
		case r != '\\':
			n = size
		case raw[i+1] == 'u':
			u := hex4(raw, i)
			if pair := isHigh(u) && isLow(hex4(raw, i+6)); pair {
				n = len(`\uXXXX\uXXXX`)
			} else if u == 0 || isSurrogate(u) {
				out = append(out, `\ufffd`...)
				i += len(`\uXXXX`)
				continue
			}
		}
		out = append(out, raw[i:i+n]...)
		i += n
	}
	return out
}

// String tells what was replaced.
func (f faults) String() string {
	var parts []string
	for _, p := range []struct {
		n         int
		one, many string
	}{
		{f.nul, "NUL character", "NUL characters"},
		{f.lone, "lone surrogate", "lone surrogates"},
		{f.bad, "invalid UTF-8 byte", "invalid UTF-8 bytes"},
	} {
		switch {
		case p.n == 1:
			parts = append(parts, "1 "+p.one+" replaced by U+FFFD")
		case p.n > 1:
			parts = append(parts, fmt.Sprintf("%d %s replaced by U+FFFD", p.n, p.many))
		}
	}
	return strings.Join(parts, ", ")
}
