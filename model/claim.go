package model

import (
	"encoding/json"
	"time"

	"gorm.io/gorm"
)

// Claim is what a check-out gives for one row: the row, and who holds it. Its
// token is the row's Checkouts counter.
type Claim struct {
	Dataset
	Holder string
}

// Ticket returns the part of the claim that later statements must show.
func (c Claim) Ticket() Ticket {
	return Ticket{ID: c.ID, Token: c.Checkouts, Holder: c.Holder}
}

// Ticket proves a claim: the row, the fencing token and the holder. Check-in,
// renewal and release change a row only if all three still match.
type Ticket struct {
	ID     int64
	Token  int32
	Holder string
}

// Verdict says how the processing of one row ended.
type Verdict uint8

// The verdicts. The first two end the row's round; the others give it back.
const (
	VerdictDone        Verdict = iota + 1 // processed: Result is stored
	VerdictFailed                         // processed: Error is stored, no further try
	VerdictRetry                          // given back for another try after Delay
	VerdictUnavailable                    // given back after Delay with its attempt refunded: the handler could not serve
)

// Outcome is what a check-in stores for one row.
type Outcome struct {
	Verdict Verdict
	// Result is a JSON value, for VerdictDone; nil is stored as JSON null.
	Result json.RawMessage
	// Error says what went wrong, for the other verdicts. With VerdictDone it
	// is a remark about the result (what had to be made safe in it), kept as
	// the row's last_error.
	Error string
	// Delay is how long a row that is given back waits, by the database's
	// clock; zero or less makes it available at once.
	Delay time.Duration
	// Version is the version of the handler that made the outcome.
	Version string
	// Effect, if not nil, is run in the transaction that stores the outcome; see
	// [Answer].
	Effect func(tx *gorm.DB) error
}

// CheckIn pairs a claim's ticket with the outcome to be stored under it.
type CheckIn struct {
	Ticket
	Outcome
}

// Receipt tells what became of a batch of check-ins.
type Receipt struct {
	// Lost are the tickets whose claim had been overtaken by a newer one: their
	// outcomes were dropped.
	Lost []Ticket
	// Replayed counts check-ins that an earlier, unanswered try of the same
	// batch had already stored.
	Replayed int
}

// Agenda is what a worker that found nothing to check out has to wait for.
type Agenda struct {
	// Next is how long until the next row becomes available: negative if no row
	// waits at all, zero if one is available now.
	Next time.Duration
	// Open is true while a row is available, held by anybody, or waiting for a
	// retry. Rows delayed into the future that were never tried don't count.
	Open bool
}

// Mark says that something that must not happen twice has happened for a row in
// this round.
type Mark struct {
	ID    int64
	Round int32
	Name  string // which of the row's effects
}
