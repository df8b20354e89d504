package checkout_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/model"
)

// worked is a job of rows {"n": 1…} that were processed: every third failed, with an
// error that names it, and every other by version v1, else v2.
func (f *fixture) worked(n int) []int64 {
	f.t.Helper()
	ids := f.add(n)
	for part := range slices.Chunk(ids, 500) {
		claims, err := f.CheckOutKeys(f.t.Context(), "w", lease, part)
		check(f.t, err)
		batch := make([]model.CheckIn, len(claims))
		for i, c := range claims {
			batch[i] = done(c, fmt.Sprint(c.ID))
			if c.ID%3 == 0 {
				batch[i] = failed(c, fmt.Sprintf(`row %d: 50%% of "x_y*" \ HTTP 503`, c.ID))
			}
			batch[i].Version = []string{"v1", "v2"}[c.ID%2]
		}
		f.checkIn(batch...)
	}
	return ids
}

func (f *fixture) reprocess(sel checkout.Selection, opts ...func(*checkout.ReprocessOptions)) checkout.Reprocessed {
	f.t.Helper()
	o := checkout.ReprocessOptions{By: "me"}
	for _, set := range opts {
		set(&o)
	}
	out, err := f.Reprocess(f.t.Context(), sel, o)
	check(f.t, err)
	return out
}

func keepHistory(o *checkout.ReprocessOptions) { o.KeepHistory = true }

// fresh are the ids of the rows that are fresh.
func (f *fixture) fresh() (ids []int64) {
	f.t.Helper()
	check(f.t, f.raw.Raw(`SELECT id FROM `+f.datasets()+` WHERE NOT is_processed AND checked_out_by IS NULL ORDER BY id`).Scan(&ids).Error)
	return ids
}

func TestEachSelectionTakesItsRows(t *testing.T) {
	third := func(id int64) bool { return id%3 == 0 }
	tests := map[string]struct {
		sel  checkout.Selection
		want func(id int64) bool
	}{
		"all":                      {checkout.Selection{All: true}, func(int64) bool { return true }},
		"failed":                   {checkout.Selection{Failed: true}, third},
		"another version":          {checkout.Selection{NotVersion: "v1"}, func(id int64) bool { return id%2 == 1 }},
		"an error":                 {checkout.Selection{Error: "HTTP 503"}, third},
		"no such error":            {checkout.Selection{Error: "http 503"}, func(int64) bool { return false }},
		"an error, grouped":        {checkout.Selection{Error: `row <n>: 50% of "x_y`}, third},
		"an error with a star":     {checkout.Selection{Error: `row 1*:`}, func(id int64) bool { return third(id) && fmt.Sprint(id)[0] == '1' }},
		"signs taken as they are":  {checkout.Selection{Error: `50% of "x_y`}, third},
		"signs that would match":   {checkout.Selection{Error: `50_ of`}, func(int64) bool { return false }},
		"a backslash":              {checkout.Selection{Error: `\ HTTP`}, third},
		"a set of letters":         {checkout.Selection{Error: `[0-9]`}, func(int64) bool { return false }},
		"a condition":              {checkout.Selection{Where: "id > 5 AND id <= 10 -- a comment"}, func(id int64) bool { return id > 5 && id <= 10 }},
		"a condition that is null": {checkout.Selection{Where: "NULL"}, func(int64) bool { return false }},
		"two together":             {checkout.Selection{Failed: true, Where: "id <= 10"}, func(id int64) bool { return third(id) && id <= 10 }},
		"alternatives together":    {checkout.Selection{Failed: true, Where: "id = 1 OR id = 3"}, func(id int64) bool { return id == 3 }},
	}
	onEach(t, func(t *testing.T, f *fixture) {
		ids := f.worked(60)
		for name, tt := range tests {
			t.Run(name, func(t *testing.T) {
				g := *f
				g.t = t
				var want []int64
				for _, id := range ids {
					if tt.want(id) {
						want = append(want, id)
					}
				}
				counts, err := g.Count(t.Context(), tt.sel)
				check(t, err)
				equal(t, "counted", counts.Total(), int64(len(want)))
				out := g.reprocess(tt.sel)
				equal(t, "put back", out.PutBack, int64(len(want)))
				if got := g.fresh(); !slices.Equal(got, want) {
					t.Fatalf("fresh: %v, want %v", got, want)
				}
				_, err = g.CancelRun(t.Context(), out.Run, func(checkout.Run) error { return nil })
				check(t, err)
				equal(t, "fresh after the cancel", len(g.fresh()), 0)
				g.wantTallies(40, 20)
			})
		}
	})
}

func TestAConditionOnlyReads(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		f.worked(3)
		for _, where := range []string{
			"nonsense", "id =", "true); DELETE FROM datasets; SELECT (1", ") OR (", "no_such_function(id)",
			"(DELETE FROM datasets)", "EXISTS (WITH x AS (DELETE FROM windrow.datasets RETURNING 1) SELECT 1 FROM x)", "1; DROP TABLE datasets",
		} {
			_, err := f.Reprocess(t.Context(), checkout.Selection{Where: where}, checkout.ReprocessOptions{By: "me"})
			if !errors.Is(err, checkout.ErrCondition) && where != ") OR (" {
				t.Errorf("%s: %v", where, err)
			}
			_, err = f.Count(t.Context(), checkout.Selection{Where: where})
			if !errors.Is(err, checkout.ErrCondition) && where != ") OR (" {
				t.Errorf("count %s: %v", where, err)
			}
		}
		equal(t, "rows", f.count(`SELECT count(*) FROM `+f.datasets()), 3)
		if runs, err := f.Runs(t.Context()); err != nil || len(runs) > 1 { // of ") OR (", which is sound
			t.Errorf("runs: %+v, %v", runs, err)
		}
	})
}

func TestASampleIsAsLargeAsAskedFor(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		f.worked(300)
		sample := func(o *checkout.ReprocessOptions) { o.Sample = 7 }
		out := f.reprocess(checkout.Selection{Failed: true}, sample)
		equal(t, "put back", out.PutBack, 7)
		for _, id := range f.fresh() {
			if id%3 != 0 {
				t.Errorf("row %d had not failed", id)
			}
		}
		equal(t, "of few", f.reprocess(checkout.Selection{Where: "id IN (1, 2)"}, sample).PutBack, 2)
	})
}

func TestManyKeysAreReadBitByBit(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		var keys []string
		for i := range 5000 {
			keys = append(keys, fmt.Sprint("k", i))
		}
		ids := f.addKeyed(keys...)
		for part := range slices.Chunk(ids, 1000) {
			claims, err := f.CheckOutKeys(t.Context(), "w", lease, part)
			check(t, err)
			var batch []model.CheckIn
			for _, c := range claims {
				batch = append(batch, done(c, `1`))
			}
			f.checkIn(batch...)
		}
		asked := append(slices.Clone(keys), make([]string, 250)...)
		for i := range 250 {
			asked[5000+i] = fmt.Sprint("missing", i)
		}
		read := 0
		sel := checkout.Selection{Name: "a file", MoreKeys: func(n int) ([]string, error) {
			part := asked[read:min(read+n, len(asked))]
			read += len(part)
			return part, nil
		}}
		out := f.reprocess(sel)
		equal(t, "put back", out.PutBack, 5000)
		equal(t, "missing", out.MissingKeys, 250)
		equal(t, "missing named", len(out.Missing), 100)
		f.wantTallies(0, 0)
	})
}

func TestARunThatWasCutOffIsGoneOnWith(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		f.worked(9000)
		stop := errors.New("stop")
		chunks := 0
		_, err := f.Reprocess(t.Context(), checkout.Selection{All: true}, checkout.ReprocessOptions{By: "me",
			Progress: func(time.Duration, checkout.Reprocessed, int64, int64) error {
				if chunks++; chunks == 2 {
					return stop
				}
				return nil
			}})
		if !errors.Is(err, stop) {
			t.Fatal(err)
		}
		half := len(f.fresh())
		if half == 0 || half >= 9000 {
			t.Fatalf("%d rows were put back before", half)
		}
		out := f.reprocess(checkout.Selection{All: true})
		equal(t, "resumed", out.Resumed, true)
		equal(t, "put back in all", out.PutBack, 9000)
		equal(t, "fresh", len(f.fresh()), 9000)
		f.wantTallies(0, 0)
		runs, err := f.Runs(t.Context())
		check(t, err)
		if len(runs) != 1 || runs[0].State != checkout.RunDone || runs[0].Left == nil || *runs[0].Left != 9000 || runs[0].FinishedAt == nil || runs[0].CreatedBy != "me" {
			t.Fatalf("runs: %+v", runs)
		}
	})
}

// A process that was killed has not said that it leaves its run.
func TestARunIsGoneOnWithOnlyWhenNobodySeemsToBeAtIt(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		f.worked(10)
		insert := `INSERT INTO ` + f.table("runs") + ` (kind, selection, created_by, state, seen_at) VALUES ('reprocess', 'all', 'other', 'running', `
		now := map[string]string{"postgres": "clock_timestamp()", "sqlite": "unixepoch() * 1000000"}[f.engine]
		check(t, f.raw.Exec(insert+now+`)`).Error)
		_, err := f.Reprocess(t.Context(), checkout.Selection{All: true}, checkout.ReprocessOptions{By: "me"})
		if !errors.Is(err, checkout.ErrRunBusy) || !strings.Contains(err.Error(), "run 1") {
			t.Fatal(err)
		}
		past := map[string]string{"postgres": "clock_timestamp() - interval '31 seconds'", "sqlite": "(unixepoch() - 32) * 1000000"}[f.engine]
		check(t, f.raw.Exec(`UPDATE `+f.table("runs")+` SET seen_at = `+past).Error)
		out := f.reprocess(checkout.Selection{All: true})
		equal(t, "resumed", out.Resumed && out.Run == 1 && out.PutBack == 10, true)
	})
}

func TestACancelledRunLeavesRowsAsTheyWere(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ids := f.worked(30)
		before := f.stands()
		out := f.reprocess(checkout.Selection{All: true}, keepHistory)
		again := f.checkOutOne("w", ids[0])
		f.checkIn(done(again, `"new"`))
		held := f.checkOutOne("w", ids[1])
		tried := f.checkOutOne("w", ids[2])
		f.checkIn(retry(tried, time.Hour, "later"))
		lost := f.checkOutOne("w", ids[3])
		f.expireOne(ids[3])

		run, err := f.CancelRun(t.Context(), out.Run, func(checkout.Run) error { return nil })
		check(t, err)
		equal(t, "restored", run.Restored, 28)
		equal(t, "state", run.State, checkout.RunCancelled)
		after := f.stands()
		for i, id := range ids {
			switch i {
			case 0:
				equal(t, "the one worked since", string(f.row(id).Result), `"new"`)
			case 1:
				f.wantState(id, model.InFlight)
			default:
				equal(t, fmt.Sprint("row ", id), after[id], before[id])
			}
		}
		equal(t, "a late check-in of a lost claim", len(f.checkIn(done(lost, `"late"`)).Lost), 1)
		equal(t, "the held row's check-in", len(f.checkIn(done(held, `"kept"`)).Lost), 0)
		f.wantTallies(20, 10)
		equal(t, "history left", f.count(`SELECT count(*) FROM `+f.table("history")), 2)
		_, err = f.CancelRun(t.Context(), out.Run, func(checkout.Run) error { return nil })
		check(t, err)
		if _, err := f.CancelRun(t.Context(), 77, nil); !errors.Is(err, checkout.ErrNotFound) {
			t.Fatal(err)
		}
	})
}

// stands tells of each row how it is for whoever reads it.
func (f *fixture) stands() map[int64]string {
	f.t.Helper()
	all := map[int64]string{}
	check(f.t, f.Export(f.t.Context(), checkout.ExportOptions{}, func(r checkout.Finished) error {
		all[r.ID] = string(r.Result)
		if r.Error != nil {
			all[r.ID] = *r.Error
		}
		return nil
	}))
	return all
}

func (f *fixture) expireOne(id int64) {
	f.t.Helper()
	past := map[string]string{"postgres": `clock_timestamp() - interval '1 second'`, "sqlite": `(unixepoch() - 1) * 1000000`}[f.engine]
	check(f.t, f.raw.Exec(`UPDATE `+f.datasets()+` SET available_at = `+past+` WHERE id = ?`, id).Error)
}

func TestACancelStopsTheRunThatIsUnderWay(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		f.worked(9000)
		other := f.open()
		var once sync.Once
		_, err := f.Reprocess(t.Context(), checkout.Selection{All: true}, checkout.ReprocessOptions{By: "me",
			Progress: func(_ time.Duration, done checkout.Reprocessed, _, _ int64) (err error) {
				once.Do(func() { _, err = other.CancelRun(t.Context(), done.Run, func(checkout.Run) error { return nil }) })
				return err
			}})
		if !errors.Is(err, checkout.ErrRunOver) {
			t.Fatal(err)
		}
		equal(t, "fresh", len(f.fresh()), 0)
		f.wantTallies(6000, 3000)
	})
}

func TestHistoryKeepsWhatIsReplaced(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ids := f.worked(6)
		held := f.reprocess(checkout.Selection{Where: fmt.Sprint("id = ", ids[5])}) // its next outcome comes while a run waits for it
		claim := f.checkOutOne("w", ids[5])
		first := f.reprocess(checkout.Selection{All: true}, keepHistory)
		equal(t, "deferred", first.Deferred, 1)
		f.checkIn(done(claim, `"between"`))
		for i, id := range ids[:5] {
			c := f.checkOutOne("w", id)
			f.checkIn([]model.CheckIn{done(c, string(f.row(id).Result)), done(c, `"other"`), done(c, `"mended"`), failed(c, "now"), done(c, `"x"`)}[i])
		}
		diff, err := f.Diff(t.Context(), first.Run, 10)
		check(t, err)
		want := map[checkout.Change]int64{checkout.Same: 1, checkout.Changed: 2, checkout.NowDone: 1, checkout.NowFailing: 1, checkout.Pending: 1}
		if fmt.Sprint(diff.Counts) != fmt.Sprint(want) || len(diff.Samples) != 4 {
			t.Fatalf("diff: %v, %d samples", diff.Counts, len(diff.Samples))
		}
		f.checkIn(failed(f.checkOutOne("w", ids[5]), "at last"))
		second := f.reprocess(checkout.Selection{All: true}, keepHistory)
		diff, err = f.Diff(t.Context(), first.Run, 10)
		check(t, err)
		want = map[checkout.Change]int64{checkout.Same: 1, checkout.Changed: 2, checkout.NowDone: 1, checkout.NowFailing: 2}
		if fmt.Sprint(diff.Counts) != fmt.Sprint(want) {
			t.Fatalf("diff after another run: %v", diff.Counts)
		}
		formers, err := f.History(t.Context(), ids[5])
		check(t, err)
		if len(formers) != 2 || formers[0].RunID != second.Run || *formers[0].Error != "at last" || formers[1].RunID != first.Run || string(formers[1].Result) != `"between"` || formers[1].ProcessedAt == nil {
			t.Fatalf("history: %+v", formers)
		}
		equal(t, "nothing kept of a run without history", f.count(fmt.Sprintf(`SELECT count(*) FROM %s WHERE run_id = %d`, f.table("history"), held.Run)), 0)
	})
}
