package jsonb

import "fmt"

// checker reads one JSON text once, by recursive descent. Its methods return
// false when they have set err; pos is then of no use.
type checker struct {
	src   []byte
	pos   int
	depth int
	err   *Error

	stored  int   // upper bound of the bytes in binary form
	printed int64 // bytes that written-out exponents add to the text

	// With lenient set, what Safe can replace is counted instead of refused.
	lenient bool
	found   faults
}

func (c *checker) document() bool {
	if len(c.src) > MaxBytes {
		return c.failAll("too big", fmt.Sprintf("%d bytes, the most for one value is %d", len(c.src), MaxBytes))
	}
	c.space()
	if c.pos == len(c.src) {
		return c.failAll("not JSON", "it is empty")
	}
	if !c.value() {
		return false
	}
	if c.space(); c.pos < len(c.src) {
		return c.fail(c.pos, "not JSON", "there is more after the value: "+c.sample())
	}
	if c.stored > maxStored {
		return c.failAll("too big", "more than the 256 MiB that PostgreSQL's jsonb can hold in binary form")
	}
	if c.printed > int64(MaxBytes-len(c.src)) {
		return c.failAll("too big", fmt.Sprintf("with the exponents of its numbers written out it has more than %d bytes", MaxBytes))
	}
	return true
}

func (c *checker) value() bool {
	if c.pos == len(c.src) {
		return c.cutShort()
	}
	c.stored += 4 // the entry in its container
	switch b := c.src[c.pos]; {
	case b == '"':
		return c.str()
	case b == '{':
		return c.nested(true)
	case b == '[':
		return c.nested(false)
	case b == '-' || b-'0' <= 9:
		return c.number()
	default:
		return c.word()
	}
}

// nested reads one array or object, whose opening bracket stands at pos.
func (c *checker) nested(isObject bool) bool {
	start := c.pos
	if c.depth == MaxDepth {
		return c.fail(start, "too deep", fmt.Sprintf("more than %d arrays and objects inside one another", MaxDepth))
	}
	c.depth++
	c.stored += 8 // header, and padding before it
	c.pos++
	c.space()
	ok := false
	if isObject {
		ok = c.object(start)
	} else {
		ok = c.array(start)
	}
	c.depth--
	return ok
}

func (c *checker) array(start int) bool {
	if c.next(']') {
		return true
	}
	for n := 1; ; n++ {
		if n > maxElements {
			return c.fail(start, "too big", fmt.Sprintf("an array of more than %d elements", maxElements))
		}
		if !c.value() {
			return false
		}
		c.space()
		if c.next(']') {
			return true
		}
		if !c.comma("]") {
			return false
		}
	}
}

func (c *checker) object(start int) bool {
	if c.next('}') {
		return true
	}
	for n := 1; ; n++ {
		if n > maxMembers {
			return c.fail(start, "too big", fmt.Sprintf("an object of more than %d members", maxMembers))
		}
		if !c.name() || !c.value() {
			return false
		}
		c.space()
		if c.next('}') {
			return true
		}
		if !c.comma("}") {
			return false
		}
	}
}

// name reads a member's name and the colon after it.
func (c *checker) name() bool {
	if c.pos == len(c.src) {
		return c.cutShort()
	}
	if c.src[c.pos] != '"' {
		return c.unexpected("a name in double quotes")
	}
	c.stored += 4
	if !c.str() {
		return false
	}
	c.space()
	if c.pos == len(c.src) {
		return c.cutShort()
	}
	if !c.next(':') {
		return c.unexpected(`":"`)
	}
	c.space()
	return true
}

func (c *checker) comma(end string) bool {
	if c.pos == len(c.src) {
		return c.cutShort()
	}
	if !c.next(',') {
		return c.unexpected(`"," or "` + end + `"`)
	}
	c.space()
	return true
}

func (c *checker) word() bool {
	for _, w := range [...]string{"true", "false", "null"} {
		if rest := c.src[c.pos:]; len(rest) >= len(w) && string(rest[:len(w)]) == w {
			c.pos += len(w)
			return true
		}
	}
	return c.unexpected("a value")
}

// next steps over b if it is what comes next.
func (c *checker) next(b byte) bool {
	if c.pos < len(c.src) && c.src[c.pos] == b {
		c.pos++
		return true
	}
	return false
}

func (c *checker) space() {
	for c.pos < len(c.src) && isSpace(c.src[c.pos]) {
		c.pos++
	}
}

func isSpace(b byte) bool {
	return b == ' ' || b == '\n' || b == '\r' || b == '\t'
}

func (c *checker) fail(at int, what, reason string) bool {
	c.err = &Error{Offset: at, What: what, Reason: reason}
	return false
}

func (c *checker) failAll(what, reason string) bool { return c.fail(-1, what, reason) }

func (c *checker) cutShort() bool {
	return c.fail(len(c.src), "not JSON", "it ends in the middle of a value")
}

func (c *checker) unexpected(want string) bool {
	return c.fail(c.pos, "not JSON", c.sample()+" where "+want+" is expected")
}

// sample quotes the text at pos, for messages.
func (c *checker) sample() string {
	rest := c.src[c.pos:min(len(c.src), c.pos+12)]
	return fmt.Sprintf("%q", rest)
}
