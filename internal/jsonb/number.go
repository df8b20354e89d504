package jsonb

import "fmt"

// The bounds of PostgreSQL's numeric, in decimal digits. The second counts
// digits as written, trailing zeros too: 1e-16383 is held, 1.0e-16383 is not.
const (
	maxIntegerDigits  = 131072
	maxFractionDigits = 16383
	// maxExponent is the largest size of an exponent that is read at all, even
	// where the number is zero.
	maxExponent = 1<<30 - 2
)

// number reads a number, of which the first byte stands at pos.
func (c *checker) number() bool {
	start := c.pos
	c.next('-')
	whole := c.pos
	if !c.digits() {
		return false
	}
	if c.src[whole] == '0' && c.pos > whole+1 {
		return c.fail(start, "not JSON", "a number with a leading zero")
	}
	fraction := c.pos
	if c.next('.') {
		fraction = c.pos
		if !c.digits() {
			return false
		}
	}
	end := c.pos
	exponent := 0
	if c.pos < len(c.src) && c.src[c.pos]|0x20 == 'e' {
		var ok bool
		if exponent, ok = c.exponent(); !ok {
			return false
		}
	}
	c.stored += (end-whole)/2 + 16 // four digits in two bytes; headers; padding
	if exponent == 0 && end-whole <= maxFractionDigits {
		return true
	}
	return c.inNumeric(start, whole, fraction, end, exponent)
}

// inNumeric tells whether the number that starts at start is one that numeric
// can hold. Its digits stand at [whole, end), its fraction at [fraction, end).
func (c *checker) inNumeric(start, whole, fraction, end, exponent int) bool {
	if exponent > maxExponent || exponent < -maxExponent {
		return c.badNumber(start, "an exponent of this size")
	}
	top, nonzero := c.topDigit(whole, fraction, end)
	top += exponent
	if nonzero && top >= maxIntegerDigits {
		return c.badNumber(start, fmt.Sprintf("more than %d digits before the decimal point", maxIntegerDigits))
	}
	scale := max(end-fraction-exponent, 0)
	if scale > maxFractionDigits {
		return c.badNumber(start, fmt.Sprintf("more than %d digits after the decimal point", maxFractionDigits))
	}
	if nonzero {
		c.printed += int64(max(top, 0))
	}
	c.printed += int64(scale)
	return true
}

// topDigit returns the decimal exponent of the first digit that isn't zero.
func (c *checker) topDigit(whole, fraction, end int) (exponent int, nonzero bool) {
	integer := fraction - whole
	if fraction < end {
		integer-- // the point
	}
	if c.src[whole] != '0' {
		return integer - 1, true
	}
	for i := fraction; i < end; i++ {
		if c.src[i] != '0' {
			return fraction - i - 1, true
		}
	}
	return 0, false
}

// exponent reads an exponent, from its e on. One too large for any number comes
// out as some value beyond maxExponent, however many digits it has.
func (c *checker) exponent() (int, bool) {
	c.pos++
	negative := c.next('-')
	if !negative {
		c.next('+')
	}
	start := c.pos
	if !c.digits() {
		return 0, false
	}
	n := 0
	for _, b := range c.src[start:c.pos] {
		n = min(n*10+int(b-'0'), maxExponent+1)
	}
	if negative {
		n = -n
	}
	return n, true
}

// digits steps over one digit or more.
func (c *checker) digits() bool {
	i := c.pos
	for i < len(c.src) && c.src[i]-'0' <= 9 {
		i++
	}
	if i == c.pos {
		if i == len(c.src) {
			return c.cutShort()
		}
		return c.unexpected("a digit")
	}
	c.pos = i
	return true
}

func (c *checker) badNumber(start int, has string) bool {
	const room = 24
	end := min(c.pos, start+room)
	what := "number " + string(c.src[start:end])
	if end < c.pos {
		what += "…"
	}
	return c.fail(start, what, has+": PostgreSQL's numeric can't hold it")
}
