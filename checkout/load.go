package checkout

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/windrow-go/windrow/model"
)

// NewRow is a row to be added.
type NewRow struct {
	// Key is the caller's own key; nil if the rows have none. A key that is
	// there already adds nothing.
	Key *string
	// Data is one JSON value that a jsonb column can hold.
	Data json.RawMessage
	// AvailableAt is when the row comes due: nobody gets it before. The zero time,
	// and one that is past by the database's clock, mean at once.
	AvailableAt time.Time
}

// vestingTime is what is stored for a due time: the sentinel if it is past at now, by
// the database's clock.
func (r NewRow) vestingTime(now time.Time) time.Time {
	if r.AvailableAt.After(now) {
		return r.AvailableAt
	}
	return model.Sentinel
}

// anyDelayed tells whether a row has a due time.
func anyDelayed(rows []NewRow) bool {
	return slices.ContainsFunc(rows, func(r NewRow) bool { return !r.AvailableAt.IsZero() })
}

// Load is one row of the table loads: an input, how far it has been read, and
// what became of its records.
type Load struct {
	ID         int64
	Source     string // names the input
	Records    int64  // read so far, bad ones included
	Digest     string // over the good records read so far
	Inserted   int64
	Duplicates int64 // key there already, data the same
	Changed    int64 // key there already, data another: not taken over
	Rejected   int64 // bad records passed over
	FinishedAt *time.Time
}

// Chunk is the next part of a load.
type Chunk struct {
	Rows []NewRow
	// Records, Rejected and Digest are the load's values after this chunk.
	Records  int64
	Rejected int64
	Digest   string
	// Last marks the load finished.
	Last bool
	// Next, if there is one, gives the chunk that follows if it is there by now; its
	// own Next counts for nothing. A store may take more in the same transaction: it
	// stores all that it has taken, or nothing.
	Next func() (Chunk, bool)
}

// ErrLoadMoved says that somebody else has moved this load on meanwhile:
// nothing of the chunk was stored.
var ErrLoadMoved = errors.New("another process is loading the same input")

// dedupe keeps the first row of every key and counts the others.
func dedupe(rows []NewRow) (unique []NewRow, duplicates, changed int64) {
	seen := make(map[string]int, len(rows))
	for _, row := range rows {
		first, there := seen[*row.Key]
		switch {
		case !there:
			seen[*row.Key] = len(unique)
			unique = append(unique, row)
		case string(unique[first].Data) == string(row.Data):
			duplicates++
		default:
			changed++
		}
	}
	return unique, duplicates, changed
}
