package processor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/windrow-go/windrow/model"
)

// fake is a table in memory that keeps the rules of the real ones: who holds a
// row under which token, until when, and what a statement may change.
type fake struct {
	mu          sync.Mutex
	rows        []*model.Dataset // sorted by id
	added       chan struct{}    // closed and replaced when rows are added or given back
	log         []string         // the statements that were carried out
	asked       []int            // the n of each check-out
	got         []int            // and how many rows it brought
	most        int              // the most rows that were held at once
	stored      int              // accepted check-ins
	marks       map[model.Mark]bool
	cost        float64
	paused      bool
	reportError error
	orders      int            // how often it was asked for a pause
	told        []model.Worker // what was reported
	next        []time.Duration
	covers      time.Duration // how long a look's report is good for, at least

	// fault, if set, is asked before (after = false) and after each statement;
	// an error is returned instead of the answer.
	fault func(op string, after bool) error
	// refuse, if set, says which outcomes the data base refuses.
	refuse func(model.CheckIn) error
}

// newFake makes a table of rows with the ids 1 to n.
func newFake(n int, edit ...func(*model.Dataset)) *fake {
	f := &fake{added: make(chan struct{}), marks: map[model.Mark]bool{}}
	f.add(n, edit...)
	return f
}

func (f *fake) add(n int, edit ...func(*model.Dataset)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range n {
		row := &model.Dataset{ID: int64(len(f.rows) + 1), Data: json.RawMessage(`{}`), AvailableAt: model.Sentinel}
		for _, e := range edit {
			e(row)
		}
		f.rows = append(f.rows, row)
	}
	f.announce()
}

func (f *fake) announce() {
	close(f.added)
	f.added = make(chan struct{})
}

// do runs one statement, with the faults that were ordered.
func (f *fake) do(ctx context.Context, op string, statement func()) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f.mu.Lock()
	fault := f.fault
	f.mu.Unlock()
	if fault != nil {
		if err := fault(op, false); err != nil {
			return err
		}
	}
	f.mu.Lock()
	statement()
	f.log = append(f.log, op)
	f.mu.Unlock()
	if fault != nil {
		return fault(op, true)
	}
	return nil
}

func (f *fake) setFault(fault func(op string, after bool) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

func (f *fake) CheckOut(ctx context.Context, holder string, lease time.Duration, n int) (claims []model.Claim, err error) {
	err = f.do(ctx, "check out", func() {
		now := time.Now()
		for _, r := range f.rows {
			if len(claims) == n {
				break
			}
			if r.IsProcessed || r.AvailableAt.After(now) {
				continue
			}
			if r.CheckedOutBy != nil {
				r.Losses++
			}
			r.CheckedOutBy, r.AvailableAt, r.LastCheckout = &holder, now.Add(lease), now
			r.Checkouts++
			r.Attempts++
			claims = append(claims, model.Claim{Dataset: *r, Holder: holder})
		}
		f.asked, f.got = append(f.asked, n), append(f.got, len(claims))
		f.most = max(f.most, f.held())
	})
	if err != nil {
		return nil, err
	}
	return claims, nil
}

func (f *fake) held() (n int) {
	for _, r := range f.rows {
		if r.CheckedOutBy != nil && !r.IsProcessed {
			n++
		}
	}
	return n
}

// find returns the row if the ticket still proves a claim on it.
func (f *fake) find(t model.Ticket) *model.Dataset {
	r := f.rows[t.ID-1]
	if r.IsProcessed || r.Checkouts != t.Token || r.CheckedOutBy == nil || *r.CheckedOutBy != t.Holder {
		return nil
	}
	return r
}

func (f *fake) CheckIn(ctx context.Context, batch []model.CheckIn) (receipt model.Receipt, err error) {
	if f.refuse != nil {
		for _, c := range batch {
			if err := f.refuse(c); err != nil {
				return receipt, err
			}
		}
	}
	for _, c := range batch {
		if c.Effect == nil {
			continue
		}
		if err := c.Effect(nil); err != nil {
			return receipt, fmt.Errorf("%w: %w", model.ErrEffect, err)
		}
	}
	err = f.do(ctx, "check in", func() {
		for _, c := range batch {
			r := f.rows[c.ID-1]
			switch {
			case f.find(c.Ticket) != nil:
				f.stored++
				f.apply(r, c.Outcome)
			case r.Checkouts == c.Token && (r.CheckedOutBy == nil || *r.CheckedOutBy == c.Holder):
				receipt.Replayed++
			default:
				receipt.Lost = append(receipt.Lost, c.Ticket)
			}
		}
	})
	return receipt, err
}

func (f *fake) apply(r *model.Dataset, o model.Outcome) {
	r.Version = &o.Version
	if o.Error != "" {
		r.LastError = &o.Error
	}
	switch o.Verdict {
	case model.VerdictDone:
		r.IsProcessed, r.Result = true, slices.Clone(o.Result)
	case model.VerdictFailed:
		r.IsProcessed, r.Error = true, &o.Error
	default:
		r.CheckedOutBy, r.AvailableAt = nil, time.Now().Add(o.Delay)
	}
	switch {
	case o.Verdict == model.VerdictRetry:
	case o.Verdict != model.VerdictUnavailable:
		r.Refunds = 0
	case o.Error != "":
		r.Refunds++
		fallthrough
	default:
		r.Attempts--
	}
}

func (f *fake) Marked(ctx context.Context, m model.Mark) (marked bool, err error) {
	err = f.do(ctx, "marked", func() { marked = f.marks[m] })
	return marked, err
}

func (f *fake) Spend(ctx context.Context, _ string, cost float64) (total float64, err error) {
	err = f.do(ctx, "spend", func() {
		f.cost += cost
		total = f.cost
	})
	return total, err
}

func (f *fake) Report(_ context.Context, w model.Worker, next time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told, f.next = append(f.told, w), append(f.next, next)
	return f.reportError
}

func (f *fake) Paused(context.Context) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.orders++
	return f.paused, nil
}

func (f *fake) Mark(ctx context.Context, m model.Mark) error {
	return f.do(ctx, "mark", func() { f.marks[m] = true })
}

func (f *fake) Renew(ctx context.Context, lease time.Duration, tickets []model.Ticket) (lost []model.Ticket, err error) {
	err = f.do(ctx, "renew", func() {
		for _, t := range tickets {
			if r := f.find(t); r != nil {
				r.AvailableAt = time.Now().Add(lease)
			} else {
				lost = append(lost, t)
			}
		}
	})
	return lost, err
}

func (f *fake) Release(ctx context.Context, tickets []model.Ticket) error {
	return f.do(ctx, "release", func() {
		for _, t := range tickets {
			if r := f.find(t); r != nil {
				r.CheckedOutBy, r.AvailableAt = nil, model.Sentinel
				r.Attempts--
			}
		}
		f.announce()
	})
}

func (f *fake) Agenda(ctx context.Context) (a model.Agenda, err error) {
	err = f.do(ctx, "agenda", func() {
		a.Next = -1
		for _, r := range f.rows {
			if r.IsProcessed {
				continue
			}
			wait := max(time.Until(r.AvailableAt), 0)
			if a.Next < 0 || wait < a.Next {
				a.Next = wait
			}
			a.Open = a.Open || wait == 0 || r.CheckedOutBy != nil || r.Attempts > 0 || r.Refunds > 0
		}
	})
	return a, err
}

func (f *fake) Look(ctx context.Context, w model.Worker, next time.Duration) (model.Agenda, time.Duration, error) {
	next = max(next, f.covers)
	if err := f.Report(ctx, w, next); err != nil {
		return model.Agenda{}, 0, err
	}
	agenda, err := f.Agenda(ctx)
	return agenda, next, err
}

func (f *fake) Wait(ctx context.Context, d time.Duration) error {
	f.mu.Lock()
	added := f.added
	f.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-added:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// steal gives a row to somebody else, as if its lease had run out.
func (f *fake) steal(id int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	thief, r := "thief", f.rows[id-1]
	r.CheckedOutBy, r.AvailableAt = &thief, time.Now().Add(time.Hour)
	r.Checkouts++
}

// row returns a copy of a row as it stands.
func (f *fake) row(id int64) model.Dataset {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *f.rows[id-1]
}

// states counts the rows by state.
func (f *fake) states() map[model.State]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[model.State]int{}
	for _, r := range f.rows {
		out[r.State(time.Now())]++
	}
	return out
}

// look reads the fake's own books.
func (f *fake) look(read func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	read()
}

// heldNow is how many rows are held.
func (f *fake) heldNow() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.held()
}
