package checkout

import (
	"cmp"
	"errors"
	"slices"

	"github.com/windrow-go/windrow/model"
)

// rowStanding is how a row stands that a check-in did not change.
type rowStanding struct {
	ID           int64
	Checkouts    int32
	IsProcessed  bool
	CheckedOutBy *string
}

// settledBy tells whether the row stands as a check-in under this ticket leaves
// it: the same token, and processed by this holder or no longer held.
func (r rowStanding) settledBy(token int32, holder string) bool {
	if r.Checkouts != token {
		return false
	}
	return r.CheckedOutBy == nil || r.IsProcessed && *r.CheckedOutBy == holder
}

// checkInColumns is a batch turned on its side, sorted by id so that all
// check-ins lock rows in one order.
type checkInColumns struct {
	holder   string
	ids      []int64
	tokens   []int32
	verdicts []int32
	results  []*string // JSON text; nil unless done
	errors   []string
	delays   []float64
	versions []string
	batch    []model.CheckIn // the same, not turned
}

// byTicket is the order in which the rows of a batch are locked; of two tickets for
// one row the newer comes last.
func byTicket(a, b model.CheckIn) int {
	return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Token, b.Token))
}

var errMixedHolders = errors.New("a batch must be of one holder")

func columnsOf(batch []model.CheckIn) (*checkInColumns, error) {
	batch = slices.Clone(batch)
	slices.SortFunc(batch, byTicket)
	c := &checkInColumns{holder: batch[0].Holder, batch: batch}
	for _, in := range batch {
		if in.Holder != c.holder {
			return nil, errMixedHolders
		}
		c.add(in)
	}
	return c, nil
}

func (c *checkInColumns) add(in model.CheckIn) {
	var result *string
	if in.Verdict == model.VerdictDone {
		json := resultText(in)
		result = &json
	}
	text := in.Error
	if text == "" && in.Verdict == model.VerdictFailed {
		text = "failed without a reason" // null would read as done
	}
	c.ids = append(c.ids, in.ID)
	c.tokens = append(c.tokens, in.Token)
	c.verdicts = append(c.verdicts, int32(in.Verdict))
	c.results = append(c.results, result)
	c.errors = append(c.errors, text)
	c.delays = append(c.delays, max(in.Delay, 0).Seconds())
	c.versions = append(c.versions, in.Version)
}

// allDone tells whether every row is done, by the same version of the handler.
func allDone(batch []model.CheckIn) bool {
	return !slices.ContainsFunc(batch, func(in model.CheckIn) bool {
		return in.Verdict != model.VerdictDone || in.Version != batch[0].Version || in.Error != ""
	})
}

// resultText is the result of a row that is done, as JSON.
func resultText(in model.CheckIn) string { return cmp.Or(string(in.Result), "null") }

// rest is the batch without the tickets that were accepted: of two for one row only
// the newer can have been.
func (c *checkInColumns) rest(accepted []int64) *checkInColumns {
	taken := setOf(accepted)
	rest := &checkInColumns{holder: c.holder}
	for i, in := range c.batch {
		if !taken[in.ID] || c.overtaken(i) {
			rest.batch = append(rest.batch, in)
			rest.add(in)
		}
	}
	return rest
}

// overtaken tells whether a newer ticket for the same row, or the same one once more,
// follows in the batch.
func (c *checkInColumns) overtaken(i int) bool {
	return i+1 < len(c.batch) && c.batch[i+1].ID == c.batch[i].ID
}

// receipt tells what became of a batch none of which was accepted.
func (c *checkInColumns) receipt(rows []rowStanding) model.Receipt {
	standing := make(map[int64]rowStanding, len(rows))
	for _, row := range rows {
		standing[row.ID] = row
	}
	var receipt model.Receipt
	for i, id := range c.ids {
		row, there := standing[id]
		if there && row.settledBy(c.tokens[i], c.holder) {
			receipt.Replayed++
			continue
		}
		receipt.Lost = append(receipt.Lost, model.Ticket{ID: id, Token: c.tokens[i], Holder: c.holder})
	}
	return receipt
}

func setOf(ids []int64) map[int64]bool {
	set := make(map[int64]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}

func releases(tickets []model.Ticket) []model.CheckIn {
	batch := make([]model.CheckIn, len(tickets))
	for i, t := range tickets {
		batch[i] = model.CheckIn{Ticket: t, Outcome: model.Outcome{Verdict: model.VerdictUnavailable}}
	}
	return batch
}

func ticketColumns(tickets []model.Ticket) (ids []int64, tokens []int32, err error) {
	sorted := slices.SortedFunc(slices.Values(tickets), func(a, b model.Ticket) int { return cmp.Compare(a.ID, b.ID) })
	for _, t := range sorted {
		if t.Holder != tickets[0].Holder {
			return nil, nil, errMixedHolders
		}
		ids = append(ids, t.ID)
		tokens = append(tokens, t.Token)
	}
	return ids, tokens, nil
}

func ticketsWithout(tickets []model.Ticket, renewed []int64) []model.Ticket {
	if len(renewed) == len(tickets) {
		return nil
	}
	kept := setOf(renewed)
	return slices.DeleteFunc(slices.Clone(tickets), func(t model.Ticket) bool { return kept[t.ID] })
}
