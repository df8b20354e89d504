package model

import "gorm.io/gorm"

// Answer is what a handler may return in place of a plain result, to say more
// about it. Returned together with an error, only its Cost counts.
type Answer struct {
	// Result is stored as a plain result would be.
	Result any
	// Cost is what the call cost, in whatever unit the caller's budget has; not
	// negative.
	Cost float64
	// Effect, if not nil, is run in the transaction that stores the outcome,
	// after the claim has been found to hold: what it does through tx happens
	// exactly once, or not at all and the row is tried again. It may run more
	// than once before a commit, also on another goroutine than the handler's,
	// so it must do nothing but through tx that can't be repeated.
	Effect func(tx *gorm.DB) error
	// Discard, if not nil, is called instead when it is certain that the
	// outcome is not stored, to tidy up what the handler had prepared.
	Discard func()
}

// AnswerOf takes what a handler has returned as an Answer, which it may be already.
func AnswerOf(returned any) Answer {
	switch r := returned.(type) {
	case Answer:
		return r
	case *Answer:
		if r == nil {
			return Answer{}
		}
		return *r
	}
	return Answer{Result: returned}
}

// Reply is the answer to one row of a batch: what a handler of single rows would
// have returned.
type Reply struct {
	Result any
	Err    error
}
