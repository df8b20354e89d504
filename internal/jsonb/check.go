// Package jsonb knows what a PostgreSQL jsonb column can hold. The same rules are
// kept on every engine, so that a table can move from one to the other and a row
// never fails at the moment its result is stored.
//
// A value must be valid JSON in valid UTF-8, without the NUL character, without
// surrogates that stand alone, with numbers inside PostgreSQL's numeric, no
// deeper than [MaxDepth], and no bigger than [MaxBytes]. Some bounds are not of
// the text but of what the server makes of it: a jsonb holds at most 256 MiB in
// its binary form, its arrays 2^24 elements and its objects 2^23 members (more
// is "invalid memory alloc request size"), and a number such as 1e131071 is
// written out with all its digits when the row is read. All of them were found
// by trying on PostgreSQL 15.
package jsonb

import "fmt"

const (
	// MaxDepth is how many arrays and objects may stand inside one another.
	MaxDepth = 1000
	// MaxBytes bounds one value: its text, and also its text with the exponents
	// of its numbers written out, which is how the database gives it back.
	MaxBytes = 64 << 20

	maxStored   = 1<<28 - 1 // bytes of one jsonb in binary form
	maxElements = 1 << 24   // of one array
	maxMembers  = 1 << 23   // of one object
)

// Error says what in a text can't be held by a jsonb column, and where.
type Error struct {
	// Offset is where the offending bytes start, counted from 0; -1 if the
	// text as a whole is at fault.
	Offset int
	// What was found, such as `\u0000`.
	What string
	// Reason is why it can't be held.
	Reason string
}

// Error returns a text fit to be shown to users; bytes are counted from 1 in it.
func (e *Error) Error() string {
	if e.Offset < 0 {
		return e.What + ": " + e.Reason
	}
	return fmt.Sprintf("%s at byte %d: %s", e.What, e.Offset+1, e.Reason)
}

// Check tells whether raw is one JSON value that a jsonb column can hold. The
// error is an [*Error]. It allocates nothing when all is well.
func Check(raw []byte) error {
	c := checker{src: raw}
	if !c.document() {
		return c.err
	}
	return nil
}
