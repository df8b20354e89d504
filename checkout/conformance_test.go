package checkout_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/model"
)

func TestCheckOutHandsOutEveryRowOnce(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ids := f.add(1000)
		other := f.open()
		var got []int64
		for turn := 0; len(got) < len(ids); turn++ {
			s, holder := f.store, "a"
			if turn%2 == 1 {
				s, holder = other, "b"
			}
			for _, c := range f.checkOut(s, holder, 64) {
				got = append(got, c.ID)
				equal(t, "token", c.Checkouts, 1)
				equal(t, "attempts", c.Attempts, 1)
				equal(t, "holder", c.Holder, holder)
			}
			if turn > 200 {
				t.Fatalf("after %d check-outs only %d of %d rows were handed out", turn, len(got), len(ids))
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, ids) {
			t.Fatal("the rows handed out are not the rows of the table, each once")
		}
		if again := f.checkOut(f.store, "a", 10); len(again) != 0 {
			t.Fatalf("handed out %d rows that are held", len(again))
		}
	})
}

func TestAClaimCarriesItsRow(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ids := f.addKeyed("one")
		c := f.checkOutOne("a", ids[0])
		equal(t, "key", *c.Key, "one")
		var data struct{ K string }
		check(t, json.Unmarshal(c.Data, &data))
		equal(t, "data", data.K, "one")
		if c.Job == "" || c.IdempotencyKey() != f.row(ids[0]).IdempotencyKey() {
			t.Fatalf("idempotency key %q", c.IdempotencyKey())
		}
		f.wantState(ids[0], model.InFlight)
	})
}

func TestCheckInStoresEachVerdict(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ids := f.add(5)
		claims, err := f.CheckOutKeys(t.Context(), "a", lease, ids)
		check(t, err)
		out := done(claims[0], `{"b": 9007199254740993}`)
		out.Version = "v1"
		unavailable := model.CheckIn{Ticket: claims[4].Ticket(), Outcome: model.Outcome{
			Verdict: model.VerdictUnavailable, Delay: time.Hour, Error: "503"}}
		receipt := f.checkIn(out, failed(claims[1], "bad"), retry(claims[2], time.Hour, "later"), retry(claims[3], 0, "now"), unavailable)
		equal(t, "lost", len(receipt.Lost), 0)

		f.wantState(ids[0], model.Done)
		f.wantState(ids[1], model.Failed)
		f.wantState(ids[2], model.Waiting)
		f.wantState(ids[3], model.Fresh)
		f.wantState(ids[4], model.Waiting)
		first := f.row(ids[0])
		equal(t, "result", string(first.Result), `{"b": 9007199254740993}`)
		equal(t, "version", *first.Version, "v1")
		if first.ProcessedAt == nil || time.Since(*first.ProcessedAt).Abs() > time.Minute {
			t.Fatalf("processed_at is %v", first.ProcessedAt)
		}
		equal(t, "error", *f.row(ids[1]).Error, "bad")
		equal(t, "last error", *f.row(ids[2]).LastError, "later")
		equal(t, "attempts of a retry", f.row(ids[2]).Attempts, 1)
		equal(t, "attempts of a row whose handler was unavailable", f.row(ids[4]).Attempts, 0)
		if f.row(ids[3]).CheckedOutBy != nil {
			t.Fatal("a row given back is still held")
		}
	})
}

func TestOnlyTheNewestClaimWrites(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		id := f.add(1)[0]
		old := f.checkOutOne("a", id)
		f.expire()
		f.wantState(id, model.Expired)
		newer := f.checkOutOne("b", id)
		equal(t, "losses", newer.Losses, 1)
		equal(t, "attempts", newer.Attempts, 2)

		equal(t, "late check-in lost", len(f.checkIn(done(old, `"old"`)).Lost), 1)
		lost, err := f.Renew(t.Context(), lease, []model.Ticket{old.Ticket()})
		check(t, err)
		equal(t, "late renewal lost", len(lost), 1)
		check(t, f.Release(t.Context(), []model.Ticket{old.Ticket()}))
		f.wantState(id, model.InFlight)
		equal(t, "attempts after a late release", f.row(id).Attempts, 2)

		equal(t, "the newer claim's check-in", len(f.checkIn(done(newer, `"new"`)).Lost), 0)
		equal(t, "result", string(f.row(id).Result), `"new"`)
		equal(t, "late check-in after it", len(f.checkIn(done(old, `"old"`)).Lost), 1)
		equal(t, "result", string(f.row(id).Result), `"new"`)
	})
}

func TestTheSameHolderClaimingAgainMakesItsOldTicketStale(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		id := f.add(1)[0]
		old := f.checkOutOne("a", id)
		f.expire()
		newer := f.checkOutOne("a", id)
		equal(t, "lost", len(f.checkIn(done(old, `1`)).Lost), 1)
		equal(t, "lost", len(f.checkIn(done(newer, `2`)).Lost), 0)
		equal(t, "result", string(f.row(id).Result), `2`)
	})
}

func TestAnExpiredClaimThatNobodyTookStillChecksIn(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		id := f.add(1)[0]
		c := f.checkOutOne("a", id)
		f.expire()
		equal(t, "lost", len(f.checkIn(done(c, `1`)).Lost), 0)
		f.wantState(id, model.Done)
	})
}

func TestACheckInSentAgainIsReplayed(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ids := f.add(3)
		claims, err := f.CheckOutKeys(t.Context(), "a", lease, ids)
		check(t, err)
		batch := []model.CheckIn{done(claims[0], `1`), retry(claims[1], 0, "x"), failed(claims[2], "y")}
		f.checkIn(batch...)
		receipt := f.checkIn(batch...)
		equal(t, "replayed", receipt.Replayed, 3)
		equal(t, "lost", len(receipt.Lost), 0)
		equal(t, "attempts", f.row(ids[1]).Attempts, 1)
	})
}

func TestReleaseRefundsOnce(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		id := f.add(1)[0]
		f.checkIn(retry(f.checkOutOne("a", id), 0, "first"))
		c := f.checkOutOne("a", id)
		equal(t, "attempts", c.Attempts, 2)
		for range 2 {
			check(t, f.Release(t.Context(), []model.Ticket{c.Ticket()}))
			equal(t, "attempts after release", f.row(id).Attempts, 1)
		}
		f.wantState(id, model.Fresh)
		equal(t, "last error is kept", *f.row(id).LastError, "first")
		again := f.checkOutOne("b", id)
		equal(t, "token", again.Checkouts, 3)
		equal(t, "losses", again.Losses, 0)
		check(t, f.Release(t.Context(), []model.Ticket{c.Ticket()}))
		f.wantState(id, model.InFlight)
	})
}

func TestRenewKeepsARowFromOthers(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		id := f.add(1)[0]
		c := f.checkOutOne("a", id)
		f.expire()
		lost, err := f.Renew(t.Context(), lease, []model.Ticket{c.Ticket()})
		check(t, err)
		equal(t, "lost", len(lost), 0)
		f.wantState(id, model.InFlight)
		others, err := f.CheckOutKeys(t.Context(), "b", lease, []int64{id})
		check(t, err)
		equal(t, "claims on a renewed row", len(others), 0)
	})
}

func TestARetryIsHandedOutWhenItComesDue(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		id := f.add(1)[0]
		f.checkIn(retry(f.checkOutOne("a", id), time.Hour, "x"))
		equal(t, "rows handed out", len(f.checkOut(f.store, "a", 1)), 0)
		agenda, err := f.Agenda(t.Context())
		check(t, err)
		if !agenda.Open || agenda.Next < 59*time.Minute || agenda.Next > time.Hour {
			t.Fatalf("agenda %+v", agenda)
		}
		f.expire()
		other := f.open()
		equal(t, "rows handed out when due", len(f.checkOut(other, "a", 1)), 1)
	})
}

func TestAgendaTellsOpenFromDelayed(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		agenda, err := f.Agenda(t.Context())
		check(t, err)
		if agenda.Open || agenda.Next >= 0 {
			t.Fatalf("agenda of an empty table: %+v", agenda)
		}
		id := f.add(1)[0]
		far := map[string]string{"postgres": `now() + interval '1 hour'`, "sqlite": `(unixepoch() + 3600) * 1000000`}[f.engine]
		check(t, f.raw.Exec(`UPDATE `+f.datasets()+` SET available_at = `+far).Error)
		if agenda, err = f.Agenda(t.Context()); err != nil || agenda.Open || agenda.Next < 59*time.Minute {
			t.Fatalf("agenda of a delayed row that was never tried: %+v, %v", agenda, err)
		}
		f.expire()
		f.checkOutOne("a", id)
		if agenda, err = f.Agenda(t.Context()); err != nil || !agenda.Open {
			t.Fatalf("agenda of a held row: %+v, %v", agenda, err)
		}
	})
}

func TestReprocessPutsRowsBackAndKeepsTheirResults(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ids := f.add(4)
		claims, err := f.CheckOutKeys(t.Context(), "a", lease, ids[:3])
		check(t, err)
		f.checkIn(done(claims[0], `"kept"`), failed(claims[1], "bad"))

		counts, err := f.Count(t.Context(), checkout.Selection{All: true})
		check(t, err)
		equal(t, "selected", counts.Total(), 3)
		out, err := f.Reprocess(t.Context(), checkout.Selection{Failed: true}, checkout.ReprocessOptions{By: "me"})
		check(t, err)
		equal(t, "put back", out.PutBack, 1)
		f.wantState(ids[1], model.Fresh)
		equal(t, "round", f.row(ids[1]).Round, 1)
		equal(t, "attempts", f.row(ids[1]).Attempts, 0)
		equal(t, "run", *f.row(ids[1]).RunID, out.Run)
		equal(t, "former error", *f.row(ids[1]).Error, "bad")

		out, err = f.Reprocess(t.Context(), checkout.Selection{All: true}, checkout.ReprocessOptions{By: "me"})
		check(t, err)
		equal(t, "put back", out.PutBack, 1)
		equal(t, "deferred", out.Deferred, 1)
		equal(t, "former result", string(f.row(ids[0]).Result), `"kept"`)
		f.wantState(ids[2], model.InFlight)
		f.wantState(ids[3], model.Fresh)
		equal(t, "round of a row never tried", f.row(ids[3]).Round, 0)

		equal(t, "the held row's check-in", len(f.checkIn(done(claims[2], `"first"`)).Lost), 0)
		f.wantState(ids[2], model.Fresh)
		equal(t, "its result", string(f.row(ids[2]).Result), `"first"`)
		equal(t, "its round", f.row(ids[2]).Round, 1)
		equal(t, "its run", *f.row(ids[2]).RunID, out.Run)
		receipt := f.checkIn(done(claims[2], `"again"`))
		equal(t, "a replay into the new round", receipt.Replayed, 1)
		equal(t, "its result", string(f.row(ids[2]).Result), `"first"`)
	})
}

// A batch may hold rows of all fates, though every row of it is done.
func TestABatchOfDoneRowsOfWhichSomeAreNotAccepted(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ids := f.add(5)
		claims, err := f.CheckOutKeys(t.Context(), "a", lease, ids)
		check(t, err)
		batch := make([]model.CheckIn, len(claims))
		for i, c := range claims {
			batch[i] = done(c, `{"n": 1}`)
			batch[i].Version = "v2"
		}
		f.checkIn(batch[3]) // so that it is replayed below
		out, err := f.Reprocess(t.Context(), checkout.Selection{Where: fmt.Sprint("id = ", ids[1])}, checkout.ReprocessOptions{By: "me"})
		check(t, err)
		equal(t, "deferred", out.Deferred, 1)
		f.expireOne(ids[2])
		newer := f.checkOutOne("b", ids[2])

		receipt := f.checkIn(batch...)
		equal(t, "replayed", receipt.Replayed, 1)
		equal(t, "lost", len(receipt.Lost), 1)
		equal(t, "the one lost", receipt.Lost[0], batch[2].Ticket)
		for _, i := range []int{0, 3, 4} {
			f.wantState(ids[i], model.Done)
			equal(t, "version", *f.row(ids[i]).Version, "v2")
			equal(t, "result", string(f.row(ids[i]).Result), `{"n": 1}`)
		}
		f.wantState(ids[1], model.Fresh)
		equal(t, "round of the row wanted again", f.row(ids[1]).Round, 1)
		equal(t, "its result", string(f.row(ids[1]).Result), `{"n": 1}`)
		f.wantState(ids[2], model.InFlight)
		equal(t, "the newer claim's check-in", len(f.checkIn(done(newer, `2`)).Lost), 0)
		equal(t, "done by the tallies", f.count(`SELECT sum(done) FROM `+f.table("tallies")), 4)
	})
}

// Each alone, since a batch may be stored in another way once some row of it is not
// accepted.
func TestADoneRowThatIsNotAccepted(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ids := f.add(3)
		for name, outdate := range map[string]func(c model.Claim) (model.Claim, model.State){
			"an older claim": func(c model.Claim) (model.Claim, model.State) {
				f.expireOne(c.ID)
				f.checkOutOne("a", c.ID)
				return c, model.InFlight
			},
			"somebody else's claim": func(c model.Claim) (model.Claim, model.State) {
				c.Holder = "b"
				return c, model.InFlight
			},
			"failed since": func(c model.Claim) (model.Claim, model.State) {
				f.expireOne(c.ID)
				f.checkIn(failed(f.checkOutOne("b", c.ID), "no"))
				return c, model.Failed
			},
		} {
			old, want := outdate(f.checkOutOne("a", ids[0]))
			ids = ids[1:]
			receipt := f.checkIn(done(old, `1`))
			if len(receipt.Lost) != 1 || receipt.Lost[0] != old.Ticket() || receipt.Replayed != 0 {
				t.Errorf("%s: %+v", name, receipt)
			}
			f.wantState(old.ID, want)
		}
	})
}

func TestADoneRowThatARunWantsAgain(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		id := f.add(1)[0]
		claim := f.checkOutOne("a", id)
		_, err := f.Reprocess(t.Context(), checkout.Selection{All: true}, checkout.ReprocessOptions{By: "me"})
		check(t, err)
		equal(t, "lost", len(f.checkIn(done(claim, `1`)).Lost), 0)
		f.wantState(id, model.Fresh)
		equal(t, "round", f.row(id).Round, 1)
	})
}

func TestABatchOfSeveralVersionsOrOutcomes(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		claims, err := f.CheckOutKeys(t.Context(), "a", lease, f.add(5))
		check(t, err)
		versions := []model.CheckIn{done(claims[0], `1`), done(claims[1], `2`)}
		versions[0].Version, versions[1].Version = "v1", "v2"
		equal(t, "lost", len(f.checkIn(versions...).Lost), 0)
		equal(t, "version", *f.row(claims[0].ID).Version, "v1")
		equal(t, "version", *f.row(claims[1].ID).Version, "v2")

		f.checkIn(done(claims[2], `3`), failed(claims[3], ""))
		f.wantState(claims[2].ID, model.Done)
		f.wantState(claims[3].ID, model.Failed)
		f.checkIn(failed(claims[4], ""))
		f.wantState(claims[4].ID, model.Failed)
	})
}

// A worker that stood still may hold a row twice: the lease ran out, and it took the
// row again.
func TestOfTwoTicketsForARowInABatchTheOlderIsLost(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ids := f.add(2)
		other, old := f.checkOutOne("a", ids[0]), f.checkOutOne("a", ids[1])
		f.expireOne(ids[1])
		newer := f.checkOutOne("a", ids[1])
		receipt := f.checkIn(done(newer, `"new"`), done(other, `1`), done(old, `"old"`))
		equal(t, "lost", len(receipt.Lost), 1)
		equal(t, "the one lost", receipt.Lost[0], old.Ticket())
		equal(t, "replayed", receipt.Replayed, 0)
		equal(t, "result", string(f.row(ids[1]).Result), `"new"`)
		f.wantState(ids[0], model.Done)
		equal(t, "done by the tallies", f.count(`SELECT sum(done) FROM `+f.table("tallies")), 2)
	})
}

func TestNoOldCheckInLandsInANewRound(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		id := f.add(1)[0]
		old := f.checkOutOne("a", id)
		f.expire()
		out, err := f.Reprocess(t.Context(), checkout.Selection{All: true}, checkout.ReprocessOptions{By: "me"})
		check(t, err)
		equal(t, "put back", out.PutBack, 1)
		f.wantState(id, model.Fresh)
		receipt := f.checkIn(done(old, `"old"`))
		equal(t, "lost", len(receipt.Lost), 1)
		f.wantState(id, model.Fresh)
		if f.row(id).Result != nil {
			t.Fatal("an old result landed in the new round")
		}
	})
}

func TestReprocessByKeys(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ids := f.addKeyed("a", "b", "c")
		claims, err := f.CheckOutKeys(t.Context(), "w", lease, ids)
		check(t, err)
		f.checkIn(done(claims[0], `1`), done(claims[1], `2`), done(claims[2], `3`))
		sel := checkout.Selection{Keys: []string{"b", "b", "nope"}}
		counts, err := f.Count(t.Context(), sel)
		check(t, err)
		equal(t, "selected", counts.Total(), 1)
		out, err := f.Reprocess(t.Context(), sel, checkout.ReprocessOptions{By: "me"})
		check(t, err)
		equal(t, "put back", out.PutBack, 1)
		equal(t, "missing", slices.Equal(out.Missing, []string{"nope"}), true)
		f.wantState(ids[1], model.Fresh)
		f.wantState(ids[0], model.Done)
	})
}

func TestASelectionMustBeOne(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		for _, sel := range []checkout.Selection{{}, {All: true, Failed: true}} {
			if _, err := f.Reprocess(t.Context(), sel, checkout.ReprocessOptions{By: "me"}); err == nil {
				t.Fatalf("selection %+v was taken", sel)
			}
		}
	})
}

func TestLoadingTheSameKeyAgainAddsNothing(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		key := func(k, v string) checkout.NewRow { return checkout.NewRow{Key: &k, Data: json.RawMessage(v)} }
		load, err := f.BeginLoad(t.Context(), "x", 0)
		check(t, err)
		check(t, f.Append(t.Context(), &load, checkout.Chunk{Records: 4, Rows: []checkout.NewRow{
			key("b", `{"v":1}`), // the first of its key
			key("a", `{"v":1}`),
			key("b", `{"v":1}`), // the same again within the chunk
			key("b", `{"v":2}`), // and changed
		}}))
		check(t, f.Append(t.Context(), &load, checkout.Chunk{Records: 7, Last: true, Rows: []checkout.NewRow{
			key("c", `{"v":1}`),
			key("a", `{"v":1}`), // there from the chunk before
			key("b", `{"v":3}`), // there, and changed
		}}))
		equal(t, "inserted", load.Inserted, 3)
		equal(t, "duplicates", load.Duplicates, 2)
		equal(t, "changed", load.Changed, 2)
		stored, err := f.LatestLoad(t.Context(), "x")
		check(t, err)
		if stored.FinishedAt == nil || stored.Records != 7 || stored.Inserted != 3 {
			t.Fatalf("stored load %+v", stored)
		}
		row, _, err := f.ByKey(t.Context(), "b")
		check(t, err)
		var data struct{ V int }
		check(t, json.Unmarshal(row.Data, &data))
		equal(t, "data of the first", data.V, 1)
		first, _, err := f.ByKey(t.Context(), "a")
		check(t, err)
		if row.ID >= first.ID {
			t.Fatal("rows are not in the input's order")
		}
	})
}

func TestALoadMovedOnBySomebodyElseStops(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		mine, err := f.BeginLoad(t.Context(), "x", 0)
		check(t, err)
		theirs := mine
		rows := []checkout.NewRow{{Data: json.RawMessage(`1`)}}
		check(t, f.Append(t.Context(), &theirs, checkout.Chunk{Rows: rows, Records: 1}))
		err = f.Append(t.Context(), &mine, checkout.Chunk{Rows: rows, Records: 1})
		if !errors.Is(err, checkout.ErrLoadMoved) {
			t.Fatalf("got %v, want ErrLoadMoved", err)
		}
		counts, err := f.Counts(t.Context())
		check(t, err)
		equal(t, "rows", counts.Total(), 1)
	})
}

func TestExportStreamsFinishedRowsInOrder(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ids := f.add(3)
		claims, err := f.CheckOutKeys(t.Context(), "a", lease, ids)
		check(t, err)
		f.checkIn(failed(claims[0], "bad"), done(claims[2], `{"x": 1}`))
		var got []int64
		check(t, f.Export(t.Context(), checkout.ExportOptions{WithData: true}, func(row checkout.Finished) error {
			got = append(got, row.ID)
			if (row.Error != nil) != (row.ID == ids[0]) || row.Data == nil {
				t.Errorf("row %+v", row)
			}
			return nil
		}))
		if !slices.Equal(got, []int64{ids[0], ids[2]}) {
			t.Fatalf("exported %v", got)
		}
		stop := errors.New("enough")
		err = f.Export(t.Context(), checkout.ExportOptions{State: model.Done}, func(row checkout.Finished) error { return stop })
		equal(t, "the callback's error", err, stop)
	})
}

func TestNotesAboutTheJob(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		value, err := f.Note(t.Context(), "handler")
		check(t, err)
		equal(t, "unset note", value, "")
		check(t, f.SetNote(t.Context(), "handler", "a"))
		check(t, f.SetNote(t.Context(), "handler", "b"))
		value, err = f.open().Note(t.Context(), "handler")
		check(t, err)
		equal(t, "note", value, "b")
	})
}

func TestWaitIsEndedByRowsBeingAdded(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		other := f.open()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		woken := make(chan error, 1)
		go func() { woken <- other.Wait(ctx, time.Minute) }()
		f.add(1)
		check(t, <-woken)
	})
}

func TestWaitEndsInTime(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		check(t, f.Wait(t.Context(), time.Millisecond))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := f.Wait(ctx, time.Minute); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want the context's error", err)
		}
		check(t, f.Wait(t.Context(), time.Millisecond))
	})
}

func TestIDsAboveTwoToThe31(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		const big = int64(1) << 41
		check(t, f.raw.Exec(`INSERT INTO `+f.datasets()+` (id, data) VALUES (?, '1'), (?, '2')`, big, big+1).Error)
		claims := f.checkOut(f.store, "a", 2)
		for len(claims) < 2 {
			claims = append(claims, f.checkOut(f.store, "a", 2)...)
		}
		f.checkIn(done(claims[0], `1`), done(claims[1], `1`))
		f.wantState(big, model.Done)
		f.wantState(big+1, model.Done)
	})
}
