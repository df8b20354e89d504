package checkout

import "errors"

var (
	// ErrHeld says that a worker holds the row, or held it when it died and nobody has
	// taken it since: it can't be cancelled, since what it stands for may be under way.
	ErrHeld = errors.New("a worker holds the row")
	// ErrProcessed says that the row has its outcome already.
	ErrProcessed = errors.New("the row is processed already")
)

// Cancelled is the error of a row that was cancelled.
const Cancelled = "cancelled"

// Writers of tallies that are no workers.
const (
	addWriter    = "add"
	cancelWriter = "cancel"
	// tallyEvery: the tally of a row whose id it divides is made one with all earlier
	// ones of its writer.
	tallyEvery = 100
)
