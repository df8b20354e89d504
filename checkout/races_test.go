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
		id := f.add(1)[0]
		f.checkIn(done(f.checkOutOne("w", id), `1`))
		// As if the check-in came while the run below is under way.
		later := map[string]string{"postgres": `processed_at + interval '1 hour'`, "sqlite": `processed_at + 3600000000`}[f.engine]
		check(t, f.raw.Exec(`UPDATE `+f.datasets()+` SET processed_at = `+later).Error)
		out, err := f.Reprocess(t.Context(), checkout.Selection{All: true}, checkout.ReprocessOptions{By: "me"})
		check(t, err)
		equal(t, "put back", out.PutBack, 1)
		f.wantState(id, model.Fresh)
	})
}
