package checkout_test

import (
	"fmt"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/model"
)

// vesting is when a row may be checked out, as far as a test must know.
type vesting string

const (
	atOnce vesting = "at once" // the sentinel
	past   vesting = "past"    // a lease run out, a retry come due
	future vesting = "future"  // a lease, a retry that waits
)

// oracleRow is what a row must be, by the rules of the design.
type oracleRow struct {
	Processed bool
	Vests     vesting
	Holder    string
	Checkouts int32
	Attempts  int32
	Losses    int32
	Round     int32
	Refunds   int32
	Redo      bool
	Result    string // "" is SQL's null
	Error     string
	LastError string
	Version   string
}

// claimable: fresh, come due, or expired.
func (r *oracleRow) claimable() bool { return !r.Processed && r.Vests != future }

// live: held, and its lease lasts.
func (r *oracleRow) live() bool { return !r.Processed && r.Holder != "" && r.Vests == future }

// tried rows are those that a reprocess of all puts back.
func (r *oracleRow) tried() bool { return r.Processed || r.Holder != "" || r.Attempts > 0 }

func (r *oracleRow) checkOut(holder string) {
	if r.Holder != "" {
		r.Losses++
	}
	r.Holder, r.Vests = holder, future
	r.Checkouts++
	r.Attempts++
}

// holds tells whether the ticket is that of the newest claim, not yet checked in.
func (r *oracleRow) holds(t model.Ticket) bool {
	return !r.Processed && r.Holder == t.Holder && r.Checkouts == t.Token
}

// settled tells whether the row stands as the ticket's own check-in leaves it.
func (r *oracleRow) settled(t model.Ticket) bool {
	return r.Checkouts == t.Token && (r.Holder == "" || r.Processed && r.Holder == t.Holder)
}

func (r *oracleRow) checkIn(o model.Outcome) {
	finished := o.Verdict == model.VerdictDone || o.Verdict == model.VerdictFailed
	switch o.Verdict {
	case model.VerdictDone:
		r.Result, r.Error = string(o.Result), ""
	case model.VerdictFailed:
		r.Result, r.Error = "", o.Error
	case model.VerdictUnavailable:
		r.Attempts--
	}
	switch {
	case o.Verdict == model.VerdictRetry:
	case o.Verdict != model.VerdictUnavailable:
		r.Refunds = 0
	case o.Error != "":
		r.Refunds++
	}
	if finished {
		r.Version = o.Version
	}
	if r.Redo {
		r.nextRound()
		return
	}
	if o.Error != "" || o.Verdict != model.VerdictUnavailable {
		r.LastError = o.Error
	}
	if finished {
		r.Processed = true
		return
	}
	r.Holder, r.Vests = "", atOnce
	if o.Delay > 0 {
		r.Vests = future
	}
}

func (r *oracleRow) nextRound() {
	r.Processed, r.Holder, r.Vests, r.Redo = false, "", atOnce, false
	r.Attempts, r.Losses, r.Refunds, r.LastError = 0, 0, 0, ""
	r.Round++
}

// putBack returns whether the row was only marked, since somebody holds it.
func (r *oracleRow) putBack() (deferred bool) {
	if r.live() {
		r.Redo = true
		return true
	}
	if !r.Processed && r.Holder != "" { // expired: its worker may still wake
		r.Checkouts++
	}
	r.nextRound()
	return false
}

// oracle is the whole table.
type oracle map[int64]*oracleRow

func newOracle(ids []int64) oracle {
	o := oracle{}
	for _, id := range ids {
		o[id] = &oracleRow{Vests: atOnce}
	}
	return o
}

// checkOut takes the claims that a store has handed out, or says what is wrong
// with them.
func (o oracle) checkOut(holder string, claims []model.Claim) error {
	for _, c := range claims {
		row := o[c.ID]
		if row == nil || !row.claimable() {
			return fmt.Errorf("row %d was handed out, which is %+v", c.ID, row)
		}
		row.checkOut(holder)
		got := oracleRow{Checkouts: c.Checkouts, Attempts: c.Attempts, Losses: c.Losses, Round: c.Round, Refunds: c.Refunds, Holder: c.Holder}
		want := oracleRow{Checkouts: row.Checkouts, Attempts: row.Attempts, Losses: row.Losses, Round: row.Round, Refunds: row.Refunds, Holder: holder}
		if got != want {
			return fmt.Errorf("the claim on row %d is %+v, want %+v", c.ID, got, want)
		}
	}
	return nil
}

// checkIn returns the receipt that the batch must get.
func (o oracle) checkIn(batch []model.CheckIn) model.Receipt {
	var receipt model.Receipt
	for _, in := range batch {
		row := o[in.ID]
		switch {
		case row.holds(in.Ticket):
			row.checkIn(in.Outcome)
		case row.settled(in.Ticket):
			receipt.Replayed++
		default:
			receipt.Lost = append(receipt.Lost, in.Ticket)
		}
	}
	return receipt
}

// renew returns the tickets that must be lost.
func (o oracle) renew(tickets []model.Ticket) (lost []model.Ticket) {
	for _, t := range tickets {
		if row := o[t.ID]; row.holds(t) {
			row.Vests = future
			continue
		}
		lost = append(lost, t)
	}
	return lost
}

// reprocess returns what it must count; keys belong to the rows of ids.
func (o oracle) reprocess(sel checkout.Selection, ids []int64) (putBack, deferred int64) {
	for _, id := range ids {
		row := o[id]
		if sel.Failed && (!row.Processed || row.Error == "") || !row.tried() {
			continue
		}
		if row.putBack() {
			deferred++
			continue
		}
		putBack++
	}
	return putBack, deferred
}

// expire lets the time pass that every lease and every delay last.
func (o oracle) expire() {
	for _, row := range o {
		if !row.Processed && row.Vests == future {
			row.Vests = past
		}
	}
}

// whole reads of the table what the oracle foretells.
func (f *fixture) whole() (oracle, error) {
	var rows []struct {
		ID  int64
		Row oracleRow `gorm:"embedded"`
	}
	now, sentinel := `clock_timestamp()`, `TIMESTAMPTZ 'epoch'`
	result := `CAST(result AS text)`
	if f.engine == "sqlite" {
		now, sentinel, result = `unixepoch('subsec') * 1000000`, `0`, `result`
	}
	err := f.raw.Raw(`
		SELECT
			id,
			is_processed AS processed,
			CASE WHEN is_processed THEN '' WHEN available_at = ` + sentinel + ` THEN 'at once' WHEN available_at > ` + now + ` THEN 'future' ELSE 'past' END AS vests,
			coalesce(checked_out_by, '') AS holder,
			checkouts, attempts, losses, round, refunds,
			redo_run IS NOT NULL AS redo,
			coalesce(` + result + `, '') AS result,
			coalesce(error, '') AS error,
			coalesce(last_error, '') AS last_error,
			coalesce(version, '') AS version
		FROM ` + f.datasets()).Scan(&rows).Error
	o := oracle{}
	for _, r := range rows {
		o[r.ID] = &r.Row
	}
	return o, err
}

// differences says where the table is not as foretold.
func (o oracle) differences(table oracle) string {
	if len(table) != len(o) {
		return fmt.Sprintf("the table has %d rows, want %d", len(table), len(o))
	}
	text := ""
	for id, want := range o {
		w := *want
		if w.Processed {
			w.Vests = "" // of no meaning
		}
		if got := table[id]; got == nil || *got != w {
			text += fmt.Sprintf("row %d:\n got %+v\nwant %+v\n", id, got, w)
		}
	}
	return text
}
