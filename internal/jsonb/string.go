package jsonb

import (
	"fmt"
	"unicode/utf8"
)

// faults counts what was found in strings that jsonb can't hold but for which a
// replacement exists.
type faults struct {
	nul  int // the escape \u0000
	lone int // escapes of surrogates that stand alone
	bad  int // bytes that aren't UTF-8
}

// str reads a string, whose opening quote stands at pos.
func (c *checker) str() bool {
	start := c.pos
	i := start + 1
	for {
		for i < len(c.src) && plain[c.src[i]] {
			i++
		}
		if i == len(c.src) {
			return c.cutShort()
		}
		var ok bool
		switch b := c.src[i]; {
		case b == '"':
			c.pos = i + 1
			c.stored += i - start
			return true
		case b == '\\':
			i, ok = c.escape(i)
		case b < ' ':
			return c.fail(i, "not JSON", fmt.Sprintf("the control character %U stands unescaped in a string", b))
		default:
			i, ok = c.multibyte(i)
		}
		if !ok {
			return false
		}
	}
}

// multibyte reads one character of several bytes and returns where the next is.
func (c *checker) multibyte(i int) (int, bool) {
	r, n := utf8.DecodeRune(c.src[i:])
	if r != utf8.RuneError || n > 1 {
		return i + n, true
	}
	if c.lenient {
		c.found.bad++
		return i + 1, true
	}
	return i, c.fail(i, fmt.Sprintf("byte 0x%02x", c.src[i]), "the text is not valid UTF-8")
}

// escape reads one escape, of which the backslash stands at i.
func (c *checker) escape(i int) (int, bool) {
	if i+1 == len(c.src) {
		return i, c.cutShort()
	}
	if c.src[i+1] == 'u' {
		return c.unicode(i)
	}
	if !simple[c.src[i+1]] {
		c.pos = i
		return i, c.fail(i, "not JSON", "no such escape in a string: "+c.sample())
	}
	return i + 2, true
}

// unicode reads a \u escape, or two of them where the first is the first half of
// a surrogate pair.
func (c *checker) unicode(i int) (int, bool) {
	r := hex4(c.src, i)
	if r < 0 {
		c.pos = i
		return i, c.fail(i, "not JSON", "four hexadecimal digits are expected: "+c.sample())
	}
	switch {
	case r == 0:
		c.found.nul++
		return i + 6, c.lenient || c.fail(i, `\u0000`, "PostgreSQL's jsonb can't hold the NUL character")
	case !isSurrogate(r):
		return i + 6, true
	case isHigh(r) && isLow(hex4(c.src, i+6)):
		return i + 12, true
	default:
		c.found.lone++
		return i + 6, c.lenient || c.fail(i, string(c.src[i:i+6]), "half of a surrogate pair, which is no character")
	}
}

// hex4 returns the number in the escape \uXXXX at i, or -1 if none stands there.
func hex4(src []byte, i int) rune {
	if len(src)-i < 6 || src[i] != '\\' || src[i+1] != 'u' {
		return -1
	}
	var r rune
	for _, b := range src[i+2 : i+6] {
		switch {
		case b-'0' <= 9:
			r = r<<4 | rune(b-'0')
		case b|0x20 >= 'a' && b|0x20 <= 'f':
			r = r<<4 | rune(b|0x20-'a'+10)
		default:
			return -1
		}
	}
	return r
}

func isSurrogate(r rune) bool { return r >= 0xd800 && r <= 0xdfff }
func isHigh(r rune) bool      { return r >= 0xd800 && r <= 0xdbff }
func isLow(r rune) bool       { return r >= 0xdc00 && r <= 0xdfff }

// plain are the bytes of a string that need no second look.
var plain = func() (t [256]bool) {
	for b := ' '; b < utf8.RuneSelf; b++ {
		t[b] = b != '"' && b != '\\'
	}
	return t
}()

// simple are the bytes that make an escape of two characters.
var simple = [256]bool{
	'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true,
}
