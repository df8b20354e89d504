package checkout_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/model"
)

func TestALoadedRowIsNotHandedOutBeforeItIsDue(t *testing.T) {
	for _, keyed := range []bool{false, true} {
		t.Run(fmt.Sprintf("keyed %v", keyed), func(t *testing.T) {
			onEach(t, func(t *testing.T, f *fixture) {
				now, err := f.Now(t.Context())
				check(t, err)
				rows := []checkout.NewRow{
					{Data: []byte(`1`)},
					{Data: []byte(`2`), AvailableAt: now.Add(time.Hour)},
					{Data: []byte(`3`), AvailableAt: now.Add(-time.Hour)},
				}
				for range 150 { // more than one statement takes, and a rest
					rows = append(rows, checkout.NewRow{Data: []byte(`4`), AvailableAt: now.Add(2 * time.Hour)})
				}
				for i := range rows {
					if key := fmt.Sprint(i); keyed {
						rows[i].Key = &key
					}
				}
				ids := f.load("test", rows)
				claims, err := f.CheckOutKeys(t.Context(), "a", lease, ids)
				check(t, err)
				if len(claims) != 2 {
					t.Fatalf("%d rows were handed out, want the two that are due", len(claims))
				}
				want := []time.Time{2: model.Sentinel, 1: now.Add(time.Hour), 3: now.Add(2 * time.Hour)}
				check(t, f.Release(t.Context(), ticketsOf(claims)))
				for i, at := range want[1:] {
					got := f.row(ids[i+1]).AvailableAt
					if d := got.Sub(at); d.Abs() > time.Microsecond {
						t.Errorf("row %d comes due at %v, want %v", i+1, got, at)
					}
				}
				agenda, err := f.Agenda(t.Context())
				check(t, err)
				equal(t, "next", agenda.Next, time.Duration(0))
			})
		})
	}
}

func TestAnAddedRowComesDueAtItsTime(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		now, err := f.Now(t.Context())
		check(t, err)
		id, added, err := f.Add(t.Context(), checkout.NewRow{Data: []byte(`{"n": 1}`), AvailableAt: now.Add(300 * time.Millisecond)})
		check(t, err)
		equal(t, "added", added, true)
		f.wantState(id, model.Waiting)
		equal(t, "claims before it is due", len(f.checkOut(f.store, "a", 10)), 0)
		agenda, covered, err := f.Look(t.Context(), model.Worker{Holder: "a"}, time.Minute)
		check(t, err)
		if covered < time.Minute || covered > 7*time.Minute {
			t.Errorf("a look is good for %v", covered)
		}
		if agenda.Open || agenda.Next <= 0 || agenda.Next > 300*time.Millisecond {
			t.Fatalf("agenda %+v", agenda)
		}
		workers, _, err := f.Workers(t.Context())
		check(t, err)
		equal(t, "workers that have told of themselves", len(workers), 1)
		check(t, f.Wait(t.Context(), time.Minute))
		claims, err := f.CheckOut(t.Context(), "a", lease, 10)
		check(t, err)
		if len(claims) != 1 || claims[0].ID != id || string(claims[0].Data) != `{"n": 1}` {
			t.Fatalf("claims %+v", claims)
		}
		past, _, err := f.Add(t.Context(), checkout.NewRow{Data: []byte(`2`), AvailableAt: now.Add(-time.Hour)})
		check(t, err)
		equal(t, "due time of what was due before", f.row(past).AvailableAt, model.Sentinel)
	})
}

func TestAKeyIsAddedOnce(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ids := f.addKeyed("loaded")
		key := "loaded"
		id, added, err := f.Add(t.Context(), checkout.NewRow{Key: &key, Data: []byte(`"other"`)})
		check(t, err)
		equal(t, "added", added, false)
		equal(t, "id", id, ids[0])

		var mu sync.Mutex
		got := map[int64]int{}
		var adders errgroup.Group
		for range 8 {
			s := f.open()
			adders.Go(func() error {
				for n := range 40 {
					key := fmt.Sprint("k", n)
					id, added, err := s.Add(t.Context(), checkout.NewRow{Key: &key, Data: []byte(`1`)})
					if err != nil {
						return err
					}
					mu.Lock()
					if got[id] += 0; added {
						got[id]++
					}
					mu.Unlock()
				}
				return nil
			})
		}
		check(t, adders.Wait())
		equal(t, "rows", len(got), 40)
		for id, n := range got {
			if n != 1 {
				t.Errorf("row %d was added %d times", id, n)
			}
		}
	})
}

func TestAWaitingOrFreshRowCanBeCancelled(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		key := "mail"
		now, err := f.Now(t.Context())
		check(t, err)
		waiting, _, err := f.Add(t.Context(), checkout.NewRow{Key: &key, Data: []byte(`1`), AvailableAt: now.Add(time.Hour)})
		check(t, err)
		check(t, f.CancelKey(t.Context(), "mail"))
		fresh, _, err := f.Add(t.Context(), checkout.NewRow{Data: []byte(`2`)})
		check(t, err)
		check(t, f.Cancel(t.Context(), fresh))
		retried, _, err := f.Add(t.Context(), checkout.NewRow{Data: []byte(`3`)})
		check(t, err)
		f.checkIn(retry(f.checkOutOne("a", retried), time.Hour, "later"))
		check(t, f.Cancel(t.Context(), retried))
		for _, id := range []int64{waiting, fresh, retried} {
			f.wantState(id, model.Failed)
			row := f.row(id)
			if *row.Error != checkout.Cancelled || row.ProcessedAt == nil || row.ProcessedAt.Sub(now).Abs() > time.Minute {
				t.Errorf("cancelled: %+v", row)
			}
		}
		if row := f.row(retried); row.LastError == nil || *row.LastError != "later" {
			t.Errorf("the error of its try is lost: %+v", row)
		}
		equal(t, "claims", len(f.checkOut(f.store, "a", 10)), 0)

		out, err := f.Reprocess(t.Context(), checkout.Selection{Failed: true}, checkout.ReprocessOptions{By: "me"})
		check(t, err)
		equal(t, "put back", out.PutBack, 3)
		f.checkIn(done(f.checkOutOne("a", waiting), `1`))
		f.wantState(waiting, model.Done)
	})
}

func TestWhatHasBegunOrEndedIsNotCancelled(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ids := f.addKeyed("a", "b", "c")
		live, dead := f.checkOutOne("w", ids[0]), f.checkOutOne("w", ids[1])
		f.checkIn(done(f.checkOutOne("w", ids[2]), `1`))
		check(t, f.raw.Exec(`UPDATE `+f.datasets()+` SET available_at = `+map[string]string{"postgres": `'1980-01-01Z'`, "sqlite": `1`}[f.engine]+` WHERE id = ?`, dead.ID).Error)
		for what, want := range map[string]error{"a": checkout.ErrHeld, "b": checkout.ErrHeld, "c": checkout.ErrProcessed, "d": checkout.ErrNotFound} {
			if err := f.CancelKey(t.Context(), what); !errors.Is(err, want) {
				t.Errorf("%s: got %v, want %v", what, err, want)
			}
		}
		if err := f.Cancel(t.Context(), 1<<40); !errors.Is(err, checkout.ErrNotFound) {
			t.Errorf("got %v", err)
		}
		receipt := f.checkIn(done(live, `1`), done(dead, `1`))
		equal(t, "lost by the refused cancels", len(receipt.Lost), 0)
	})
}

// Everybody races for the same rows: each is either handed out or cancelled.
func TestACancelAndACheckOutNeverBothHaveARow(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		const rows = 200
		ids := f.add(rows)
		taken := make([]int64, 0, rows)
		cancelled := 0
		var racers errgroup.Group
		worker, other := f.open(), f.open()
		racers.Go(func() error {
			for _, id := range ids {
				claims, err := worker.CheckOutKeys(t.Context(), "w", lease, []int64{id})
				if err != nil {
					return err
				}
				for _, c := range claims {
					taken = append(taken, c.ID)
				}
			}
			return nil
		})
		racers.Go(func() error {
			for _, id := range slices.Backward(ids) {
				switch err := other.Cancel(t.Context(), id); {
				case err == nil:
					cancelled++
				case !errors.Is(err, checkout.ErrHeld):
					return err
				}
			}
			return nil
		})
		check(t, racers.Wait())
		if len(taken)+cancelled != rows {
			t.Fatalf("%d taken and %d cancelled of %d", len(taken), cancelled, rows)
		}
		for _, id := range taken {
			f.wantState(id, model.InFlight)
		}
		counts := f.exactCounts()
		equal(t, "failed", counts[model.Failed], int64(cancelled))
	})
}

func TestAnOverviewKnowsWhatWasAddedAndCancelled(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		f.addSpan()
		last := int64(0)
		for i := range 250 { // over two of the occasions on which tallies are summed up
			key := fmt.Sprint(i)
			id, _, err := f.Add(t.Context(), checkout.NewRow{Key: &key, Data: []byte(`1`)})
			check(t, err)
			check(t, f.Cancel(t.Context(), id))
			last = id
		}
		_, added, err := f.Add(t.Context(), checkout.NewRow{Data: []byte(`1`)})
		check(t, err)
		equal(t, "added", added, true)
		o := f.overview(false)
		if !o.Exact() {
			t.Errorf("estimated: %v", o.Estimated)
		}
		f.wantCounts(o, f.exactCounts())
		equal(t, "failed", o.Counts[model.Failed], 250)
		var tallies int
		check(t, f.raw.Raw(`SELECT count(*) FROM `+f.table("tallies")+` WHERE writer IN ('add', 'cancel')`).Scan(&tallies).Error)
		if tallies > 200 {
			t.Errorf("%d tallies are left, up to row %d", tallies, last)
		}
	})
}

// A wait hears of what another process adds, time and again, and what it heard once
// does not end the next.
func TestWaitEndsOncePerEvent(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		other := f.open()
		for range 3 {
			woken := make(chan error, 1)
			go func() { woken <- f.Wait(t.Context(), time.Minute) }()
			for range 5 {
				_, _, err := other.Add(t.Context(), checkout.NewRow{Data: []byte(`1`)})
				check(t, err)
			}
			check(t, <-woken)
			claims := f.checkOut(f.store, "a", 100)
			for len(claims) > 0 {
				var batch []model.CheckIn
				for _, c := range claims {
					batch = append(batch, done(c, `1`))
				}
				f.checkIn(batch...)
				claims = f.checkOut(f.store, "a", 100)
			}
		}
		check(t, f.Wait(t.Context(), 60*time.Millisecond)) // the rest of what there was to hear
		began := time.Now()
		check(t, f.Wait(t.Context(), 300*time.Millisecond))
		if took := time.Since(began); took < 300*time.Millisecond {
			t.Errorf("a wait ended after %v, though nothing happened", took)
		}
	})
}
