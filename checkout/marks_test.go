package checkout_test

import (
	"sync"
	"testing"
	"time"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/model"
)

func TestAMarkStaysForItsRowRoundAndName(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		c := f.checkOutOne("a", f.add(1)[0])
		m := model.Mark{ID: c.ID, Round: c.Round, Name: `mail "é" ? @id $1`}
		f.wantMarked(m, false)
		for range 2 { // again is fine
			check(t, f.Mark(t.Context(), m))
			f.wantMarked(m, true)
		}
		for _, other := range []model.Mark{
			{ID: m.ID + 1, Round: m.Round, Name: m.Name},
			{ID: m.ID, Round: m.Round + 1, Name: m.Name},
			{ID: m.ID, Round: m.Round, Name: m.Name + "x"},
			{ID: m.ID, Round: m.Round},
		} {
			f.wantMarked(other, false)
		}
		check(t, f.Mark(t.Context(), model.Mark{ID: m.ID, Round: m.Round})) // no name is a name too
		f.wantMarked(model.Mark{ID: m.ID, Round: m.Round}, true)

		f.expire() // somebody else has the row by now: it has happened all the same
		f.checkOutOne("b", c.ID)
		late := model.Mark{ID: c.ID, Round: c.Round, Name: "late"}
		check(t, f.Mark(t.Context(), late))
		f.wantMarked(late, true)
		when := map[string]string{"postgres": `extract(epoch FROM marked_at)`, "sqlite": `marked_at / 1e6`}[f.engine]
		var at []float64
		check(t, f.raw.Raw(`SELECT `+when+` FROM `+f.table("marks")).Scan(&at).Error)
		equal(t, "marks", len(at), 3)
		for _, seconds := range at {
			if time.Since(time.Unix(int64(seconds), 0)).Abs() > time.Minute {
				t.Errorf("marked at %v", seconds)
			}
		}
	})
}

// wantMarked asks as another process would, so that only what is committed counts.
func (f *fixture) wantMarked(m model.Mark, want bool) {
	f.t.Helper()
	got, err := f.open().Marked(f.t.Context(), m)
	check(f.t, err)
	if got != want {
		f.t.Fatalf("%+v is marked: %v, want %v", m, got, want)
	}
}

func TestManyMarkTheSameAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		m := model.Mark{ID: 1, Name: "mail"}
		var running sync.WaitGroup
		for _, s := range []store{f.store, f.open(), f.open()} {
			for range 4 {
				running.Go(func() {
					if err := s.Mark(t.Context(), m); err != nil {
						t.Error(err)
					}
				})
			}
		}
		running.Wait()
		var n int
		check(t, f.raw.Raw(`SELECT count(*) FROM `+f.table("marks")).Scan(&n).Error)
		equal(t, "marks", n, 1)
	})
}

// Given back because the handler could not serve, again and again; only the end of
// the round ends the count.
func TestRefundsAreCounted(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		id := f.add(1)[0]
		refunds, round := int32(0), int32(0)
		step := func(what string, out model.Outcome, want int32) {
			t.Helper()
			c := f.checkOutOne("a", id)
			equal(t, "refunds of the claim before "+what, c.Refunds, refunds)
			equal(t, "attempts of the claim before "+what, c.Attempts > 0, true)
			f.checkIn(model.CheckIn{Ticket: c.Ticket(), Outcome: out})
			row := f.row(id)
			equal(t, "refunds after "+what, row.Refunds, want)
			equal(t, "round after "+what, row.Round, round)
			refunds = want
		}
		unavailable := model.Outcome{Verdict: model.VerdictUnavailable, Error: "503"}
		released := model.Outcome{Verdict: model.VerdictUnavailable}
		again := model.Outcome{Verdict: model.VerdictRetry, Error: "x"}
		step("an outage", unavailable, 1)
		step("an outage", unavailable, 2)
		step("a release", released, 2)
		equal(t, "last error", *f.row(id).LastError, "503")
		equal(t, "attempts", f.row(id).Attempts, 0)
		step("an outage", unavailable, 3)
		step("a retry", again, 3)
		step("an outage", unavailable, 4)

		claimless, _, err := f.ByID(t.Context(), id)
		check(t, err)
		equal(t, "refunds read", claimless.Refunds, 4)
		f.reprocessAll()
		round = f.row(id).Round
		equal(t, "round", round, 1)
		equal(t, "refunds of the next round", f.row(id).Refunds, 0)
		refunds = 0

		step("an outage", unavailable, 1)
		c := f.checkOutOne("a", id)
		f.reprocessAll() // which leaves the claim alone
		equal(t, "refunds of a held row", f.row(id).Refunds, 1)
		f.checkIn(model.CheckIn{Ticket: c.Ticket(), Outcome: unavailable})
		equal(t, "refunds of a row whose next round has begun", f.row(id).Refunds, 0)
		refunds, round = 0, f.row(id).Round

		step("an outage", unavailable, 1)
		step("success", model.Outcome{Verdict: model.VerdictDone}, 0)
	})
}

func (f *fixture) reprocessAll() {
	f.t.Helper()
	_, err := f.Reprocess(f.t.Context(), checkout.Selection{All: true}, checkout.ReprocessOptions{By: "me"})
	check(f.t, err)
}
