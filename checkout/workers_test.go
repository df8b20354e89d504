package checkout_test

import (
	"testing"
	"time"

	"github.com/windrow-go/windrow/model"
)

func TestWorkersAreListedAsTheyAre(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		a := model.Worker{Holder: "h/1/a", Host: "h", PID: 1, Program: "1.0", Version: "v", Slots: 4, Lease: 60}
		b := model.Worker{Holder: "h/2/b", Host: "h", PID: 2, Program: "1.0", Slots: 1, Lease: 60, Trouble: "503"}
		check(t, f.Report(t.Context(), a, time.Minute))
		check(t, f.Report(t.Context(), b, time.Minute))
		a.InFlight, a.Done, a.Failed, a.Retried, a.Released, a.Lost, a.Rate = 3, 10, 2, 5, 1, 1, 2.5
		check(t, f.Report(t.Context(), a, time.Minute))
		all := f.workers()
		got := all[a.Holder]
		if got.StartedAt.IsZero() || got.SeenAt.Before(got.StartedAt) || got.ExpectedBy.Sub(got.SeenAt) < time.Minute || got.ExpectedBy.Sub(got.SeenAt) > 2*time.Minute {
			t.Fatalf("started %v, seen %v, expected by %v", got.StartedAt, got.SeenAt, got.ExpectedBy)
		}
		got.StartedAt, got.SeenAt, got.ExpectedBy = time.Time{}, time.Time{}, time.Time{}
		equal(t, "worker", got, a)
		f.wantWorker(b.Holder, model.WorkerSlowed)
		b.Trouble = ""
		check(t, f.Report(t.Context(), b, time.Minute))
		f.wantWorker(b.Holder, model.WorkerLive)
		check(t, f.Report(t.Context(), b, -1))
		f.wantWorker(b.Holder, model.WorkerStopped)
		f.age(2 * time.Minute)
		f.wantWorker(a.Holder, model.WorkerGone)
	})
}

func TestWorkersThatAreLongGoneAreForgottenAndTheirTalliesKept(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ids := f.add(5)
		for i, holder := range []string{"a", "b"} {
			check(t, f.Report(t.Context(), model.Worker{Holder: holder}, time.Minute))
			claims, err := f.CheckOutKeys(t.Context(), holder, lease, ids[2*i:2*i+2])
			check(t, err)
			f.checkIn(done(claims[0], `1`), failed(claims[1], "x"))
		}
		f.wantTallies(2, 2)
		f.age(25 * time.Hour)
		check(t, f.open().Report(t.Context(), model.Worker{Holder: "c"}, time.Minute))
		if all := f.workers(); len(all) != 1 || all["c"].Holder != "c" {
			t.Fatalf("remembered: %v", all)
		}
		f.wantTallies(2, 2)
		equal(t, "writers", f.count(`SELECT count(*) FROM `+f.table("tallies")+` WHERE writer IN ('a', 'b')`), 0)
		// One that was forgotten and comes back goes on.
		f.checkIn(done(f.checkOutOne("a", ids[4]), `1`))
		f.wantTallies(3, 2)
	})
}

func TestAWorkerSumsItsTalliesUp(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ids := f.add(6)
		for _, id := range ids[:5] {
			f.checkIn(done(f.checkOutOne("a", id), `1`))
		}
		f.age(3 * time.Minute)
		f.checkIn(failed(f.checkOutOne("a", ids[5]), "x"))
		check(t, f.Report(t.Context(), model.Worker{Holder: "a"}, time.Minute))
		f.wantTallies(5, 1)
		equal(t, "tallies", f.count(`SELECT count(*) FROM `+f.table("tallies")+` WHERE writer = 'a'`), 2)
	})
}

func TestOnlyWhatChangesTheTableIsTallied(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ids := f.add(4)
		claims, err := f.CheckOutKeys(t.Context(), "a", lease, ids)
		check(t, err)
		batch := []model.CheckIn{done(claims[0], `1`), failed(claims[1], "x"), retry(claims[2], 0, "y")}
		f.checkIn(batch...)
		f.checkIn(batch...) // its answer was lost
		f.wantTallies(1, 1)
		stale := done(claims[3], `1`)
		stale.Token--
		f.checkIn(stale)
		check(t, f.Release(t.Context(), ticketsOf(claims[3:])))
		f.wantTallies(1, 1)
	})
}

func TestAPauseLastsUntilItEnds(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		want := func(want bool) {
			t.Helper()
			got, err := f.open().Paused(t.Context())
			check(t, err)
			equal(t, "paused", got, want)
		}
		want(false)
		check(t, f.Pause(t.Context(), "me@here"))
		want(true)
		check(t, f.Resume(t.Context()))
		want(false)
		check(t, f.Resume(t.Context()))
	})
}

// workers are all that are remembered, by holder.
func (f *fixture) workers() map[string]model.Worker {
	f.t.Helper()
	list, _, err := f.Workers(f.t.Context())
	check(f.t, err)
	byHolder := map[string]model.Worker{}
	for _, w := range list {
		byHolder[w.Holder] = w
	}
	return byHolder
}

func (f *fixture) wantWorker(holder string, want model.WorkerState) {
	f.t.Helper()
	list, now, err := f.Workers(f.t.Context())
	check(f.t, err)
	for _, w := range list {
		if w.Holder == holder {
			equal(f.t, holder, w.State(now), want)
			return
		}
	}
	f.t.Fatalf("no worker %s in %v", holder, list)
}

// age makes all that workers have written older.
func (f *fixture) age(d time.Duration) {
	f.t.Helper()
	by, epoch := `CAST(? AS double precision) * interval '1 second'`, `'epoch'`
	n := d.Seconds()
	if f.engine == "sqlite" {
		by, epoch, n = `?`, `0`, float64(d.Microseconds())
	}
	for _, column := range []string{"started_at", "seen_at", "expected_by"} {
		check(f.t, f.raw.Exec(`UPDATE `+f.table("workers")+` SET `+column+` = `+column+` - `+by, n).Error)
	}
	check(f.t, f.raw.Exec(`UPDATE `+f.table("tallies")+` SET at = at - `+by+` WHERE at > `+epoch, n).Error)
}

func (f *fixture) count(query string) (n int) {
	f.t.Helper()
	check(f.t, f.raw.Raw(query).Scan(&n).Error)
	return n
}

// wantTallies checks the sums of the tallies, and that they are what a count finds.
func (f *fixture) wantTallies(done, failed int) {
	f.t.Helper()
	equal(f.t, "tally of the done", f.count(`SELECT sum(done) FROM `+f.table("tallies")), done)
	equal(f.t, "tally of the failed", f.count(`SELECT sum(failed) FROM `+f.table("tallies")), failed)
	counts, err := f.Counts(f.t.Context())
	check(f.t, err)
	equal(f.t, "done", counts[model.Done], int64(done))
	equal(f.t, "failed", counts[model.Failed], int64(failed))
}

// On SQLite each report wakes all others: so those that have nothing to do report
// together. Who has just worked is to be seen as idle soon.
func TestIdleWorkersOfAFileReportTogether(t *testing.T) {
	f := onSQLite(t)
	other := f.open()
	ends := func(s store, w model.Worker) time.Time {
		t.Helper()
		_, covered, err := s.Look(t.Context(), w, time.Minute)
		check(t, err)
		return time.Now().Add(covered)
	}
	a, b := ends(f.store, model.Worker{Holder: "a"}), ends(other, model.Worker{Holder: "b"})
	for _, end := range []time.Time{a, b} {
		if off := end.Sub(end.Round(5 * time.Minute)).Abs(); off > 5*time.Second {
			t.Errorf("the next report is %v off the moment at which all report", off)
		}
	}
	workers, now, err := f.Workers(t.Context())
	check(t, err)
	for _, w := range workers {
		if w.State(now.Add(time.Minute)) != model.WorkerLive {
			t.Errorf("%s seems gone after a minute", w.Holder)
		}
	}
	if _, covered, err := f.Look(t.Context(), model.Worker{Holder: "c", Rate: 1}, time.Minute); err != nil || covered != time.Minute {
		t.Errorf("a worker that was at work until now reports in %v (%v)", covered, err)
	}
}
