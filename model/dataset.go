package model

import (
	"encoding/json"
	"fmt"
	"time"
)

// Sentinel is the Unix epoch, the date way in the past that available_at and
// last_checkout hold instead of NULL. It sorts before every real instant, so one
// condition, available_at <= now, finds fresh rows, expired leases, retries that
// have come due and delayed rows alike.
var Sentinel = time.Unix(0, 0).UTC()

// Dataset is one row of work, as it stands in the table. A handler is given one
// with ID, Key, Data, Attempts, Losses, Round and Refunds filled in; reading
// commands fill in all of it.
type Dataset struct {
	ID           int64           `gorm:"column:id;primaryKey" json:"id"`
	Key          *string         `gorm:"column:key" json:"key,omitempty"`
	Data         json.RawMessage `gorm:"column:data" json:"data"`
	IsProcessed  bool            `gorm:"column:is_processed" json:"is_processed"`
	AvailableAt  time.Time       `gorm:"column:available_at" json:"available_at"`
	LastCheckout time.Time       `gorm:"column:last_checkout" json:"last_checkout"`
	Checkouts    int32           `gorm:"column:checkouts" json:"checkouts"`
	CheckedOutBy *string         `gorm:"column:checked_out_by" json:"checked_out_by,omitempty"`
	Attempts     int32           `gorm:"column:attempts" json:"attempts"`
	Losses       int32           `gorm:"column:losses" json:"losses"`
	Round        int32           `gorm:"column:round" json:"round"`
	Refunds      int32           `gorm:"column:refunds" json:"refunds"`
	RunID        *int64          `gorm:"column:run_id" json:"run_id,omitempty"`
	RedoRun      *int64          `gorm:"column:redo_run" json:"redo_run,omitempty"`
	Result       json.RawMessage `gorm:"column:result" json:"result,omitempty"`
	Error        *string         `gorm:"column:error" json:"error,omitempty"`
	LastError    *string         `gorm:"column:last_error" json:"last_error,omitempty"`
	ProcessedAt  *time.Time      `gorm:"column:processed_at" json:"processed_at,omitempty"`
	Version      *string         `gorm:"column:version" json:"version,omitempty"`

	// Job is the uuid of the table that the row stands in. It is no column: the
	// store fills it in at check-out, to make idempotency keys unique across
	// databases.
	Job string `gorm:"-" json:"-"`
}

// IdempotencyKey is the same for every try of this row in this round, and for no
// other row anywhere: table uuid / id / round. Hand it to whatever must not
// happen twice, such as a payment.
func (d Dataset) IdempotencyKey() string {
	return fmt.Sprintf("%s/%d/%d", d.Job, d.ID, d.Round)
}

// State tells where the row stands at the instant now, which should come from
// the database's clock.
func (d Dataset) State(now time.Time) State {
	switch {
	case d.IsProcessed && d.Error != nil:
		return Failed
	case d.IsProcessed:
		return Done
	case d.CheckedOutBy != nil && d.AvailableAt.After(now):
		return InFlight
	case d.CheckedOutBy != nil:
		return Expired
	case d.AvailableAt.After(now):
		return Waiting
	default:
		return Fresh
	}
}

// State is where a row stands between being loaded and being processed.
type State string

// The states of a row. A retry that has come due counts as fresh: it may be
// checked out like any other.
const (
	Fresh    State = "fresh"     // may be checked out
	InFlight State = "in_flight" // held, lease in the future
	Waiting  State = "waiting"   // not held, available in the future
	Expired  State = "expired"   // held, lease past: its worker is gone
	Done     State = "done"      // processed, with a result
	Failed   State = "failed"    // processed, with an error
)
