package checkout_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/model"
)

func TestOfTwoLoadsThatBeginAtOnceOneDoes(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		other := f.open()
		begun := make(chan error)
		for _, s := range []store{f.store, other} {
			go func() {
				_, err := s.BeginLoad(t.Context(), "x", 0)
				begun <- err
			}()
		}
		first, second := <-begun, <-begun
		if first != nil {
			first, second = second, first
		}
		check(t, first)
		if !errors.Is(second, checkout.ErrLoadMoved) {
			t.Fatalf("got %v, want ErrLoadMoved", second)
		}
	})
}

func TestSourcesNameWhatHasBroughtRows(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		_, err := f.BeginLoad(t.Context(), "empty", 0)
		check(t, err)
		sources, err := f.Sources(t.Context())
		check(t, err)
		equal(t, "sources of an empty table", len(sources), 0)

		check(t, f.raw.Exec(`INSERT INTO `+f.datasets()+` (data) VALUES ('1')`).Error)
		sources, err = f.Sources(t.Context())
		check(t, err)
		equal(t, "sources of rows without a load", slices.Equal(sources, []string{""}), true)

		f.add(1)
		sources, err = f.Sources(t.Context())
		check(t, err)
		equal(t, "sources", slices.Equal(sources, []string{"test"}), true)
	})
}

// A row that is held when a run begins has not seen what the run is about, even if
// it is checked in before the run comes to it.
func TestARowFinishedWhileARunIsUnderWayIsPutBackByIt(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ids := f.add(2)
		claims, err := f.CheckOutKeys(t.Context(), "w", lease, ids)
		check(t, err)
		f.checkIn(done(claims[0], `1`))
		began := f.row(ids[0]).ProcessedAt
		f.checkIn(done(claims[1], `1`))
		// As if the run had begun between the two check-ins.
		if f.engine == "postgres" {
			check(t, f.raw.Exec(`ALTER TABLE windrow.runs ALTER created_at SET DEFAULT '`+
				began.Format("2006-01-02 15:04:05.999999-07:00")+`'`).Error)
		} else {
			t.Log("the file's clock has milliseconds: both check-ins are in one")
		}
		out, err := f.Reprocess(t.Context(), checkout.Selection{All: true}, "me")
		check(t, err)
		equal(t, "put back", out.PutBack, 2)
		f.wantState(ids[1], model.Fresh)
	})
}
