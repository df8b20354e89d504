package checkout_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/libtnb/sqlite"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
	"github.com/windrow-go/windrow/model"
)

// failureReader is what both engines offer beside store.
type failureReader interface {
	Failures(ctx context.Context, each func(checkout.Failure) error) error
}

var (
	_ failureReader = (*checkout.Postgres)(nil)
	_ failureReader = (*checkout.SQLite)(nil)
)

// failures are what a store tells, in its order.
func (f *fixture) failures() []checkout.Failure {
	f.t.Helper()
	var all []checkout.Failure
	check(f.t, f.store.(failureReader).Failures(f.t.Context(), func(one checkout.Failure) error {
		all = append(all, one)
		return nil
	}))
	return all
}

// wantFailures compares ids, states and errors, in order.
func (f *fixture) wantFailures(want ...string) []checkout.Failure {
	f.t.Helper()
	all := f.failures()
	got := make([]string, len(all))
	for i, one := range all {
		got[i] = fmt.Sprintf("%d %s %s", one.ID, one.State, one.Error)
	}
	equal(f.t, "failures", strings.Join(got, "; "), strings.Join(want, "; "))
	return all
}

// versioned is a check-in by the handler of a version.
func versioned(in model.CheckIn, version string) model.CheckIn {
	in.Version = version
	return in
}

func TestFailuresAreThoseOfFailedAndOfWaitingRows(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ids := f.addKeyed("failed", "waits", "due", "at once", "tried again", "done", "remark", "fresh", "put back")
		equal(t, "first id", ids[0], 1)
		f.wantFailures()
		f.checkIn(failed(f.checkOutOne("a", 9), "of another round"))
		_, err := f.Reprocess(t.Context(), checkout.Selection{Keys: []string{"put back"}}, checkout.ReprocessOptions{By: "me"})
		check(t, err)

		f.checkIn(versioned(failed(f.checkOutOne("a", 1), "bad"), "v1"))
		f.checkIn(retry(f.checkOutOne("a", 3), time.Hour, "is due"))
		f.checkIn(retry(f.checkOutOne("a", 5), time.Hour, "is tried"))
		f.expire()
		f.checkOutOne("a", 5)
		f.checkIn(retry(f.checkOutOne("a", 2), time.Hour, "later"))
		f.checkIn(retry(f.checkOutOne("a", 4), 0, "at once"))
		f.checkIn(done(f.checkOutOne("a", 6), `1`))
		remark := done(f.checkOutOne("a", 7), `1`)
		remark.Error = "result made safe"
		f.checkIn(remark)

		all := f.wantFailures("1 failed bad", "3 waiting is due", "2 waiting later")
		equal(t, "key", *all[0].Key, "failed")
		equal(t, "version", *all[0].Version, "v1")
		equal(t, "time of a failed row", all[0].At.Compare(*f.row(1).ProcessedAt), 0)
		equal(t, "time of a waiting row", all[2].At.Compare(f.row(2).LastCheckout), 0)
		equal(t, "zone", all[0].At.Location(), time.UTC)
	})
}

// The version that stands with a waiting row is that of its round before.
func TestAWaitingRowsVersionIsNotKnown(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		id := f.add(1)[0]
		f.checkIn(versioned(failed(f.checkOutOne("a", id), "bad"), "v1"))
		_, err := f.Reprocess(t.Context(), checkout.Selection{Failed: true}, checkout.ReprocessOptions{By: "me"})
		check(t, err)
		f.checkIn(versioned(retry(f.checkOutOne("a", id), time.Hour, "later"), "v2"))
		all := f.wantFailures("1 waiting later")
		if all[0].Version != nil || all[0].Key != nil {
			t.Errorf("version %v, key %v", all[0].Version, all[0].Key)
		}
	})
}

func TestFailuresAreThoseOfOneInstant(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ids := f.add(1000)
		claims, err := f.CheckOutKeys(t.Context(), "a", lease, ids)
		check(t, err)
		batch := make([]model.CheckIn, len(claims))
		for i, c := range claims {
			batch[i] = failed(c, "bad")
			if i%3 == 0 {
				batch[i] = retry(c, time.Hour, "later")
			}
		}
		f.checkIn(batch...)
		other := f.open()
		n := 0
		check(t, f.store.(failureReader).Failures(t.Context(), func(checkout.Failure) error {
			if n++; n == 1 {
				_, err := other.Reprocess(t.Context(), checkout.Selection{All: true}, checkout.ReprocessOptions{By: "me"})
				return err
			}
			return nil
		}))
		equal(t, "failures", n, 1000)
		f.wantFailures()
	})
}

func TestFailuresStopWhenTold(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ids := f.add(3)
		f.checkIn(failed(f.checkOutOne("a", ids[0]), "bad"))
		for _, id := range ids[1:] {
			f.checkIn(retry(f.checkOutOne("a", id), time.Hour, "later"))
		}
		enough := errors.New("enough")
		for stop := 1; stop <= 3; stop++ {
			n := 0
			err := f.store.(failureReader).Failures(t.Context(), func(checkout.Failure) error {
				if n++; n == stop {
					return enough
				}
				return nil
			})
			if err != enough || n != stop {
				t.Errorf("got %v after %d rows, want the error of row %d", err, n, stop)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := f.store.(failureReader).Failures(ctx, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: got %v", err)
		}
	})
}

func TestALongErrorIsCut(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		ids := f.add(2)
		f.checkIn(failed(f.checkOutOne("a", ids[0]), "x"), retry(f.checkOutOne("a", ids[1]), time.Hour, "x"))
		long := strings.Repeat("é", 1<<20)
		check(t, f.raw.Exec(`UPDATE `+f.datasets()+` SET error = ?, last_error = ?`, long, long).Error)
		for _, one := range f.failures() {
			equal(t, "characters", utf8.RuneCountInString(one.Error), 16384)
		}
	})
}

// However many rows have failed, and whatever the server knows of it, both statements
// go by the indexes that are made for them.
func TestFailuresGoByThePartialIndexes(t *testing.T) {
	const rows = 20_000
	f := onPostgres(t, checkout.Options{})
	f.grow(rows)
	f.url += "&session_preload_libraries=auto_explain&auto_explain.log_min_duration=0&auto_explain.log_format=json"
	f.store = f.open()
	f.log = pgtest.Shared(t).Log()
	marks := map[string]struct {
		mark  string
		scans []string
	}{
		"failed":  {"left(d.error", []string{"Index Scan failed_datasets_idx"}},
		"waiting": {"left(d.last_error", []string{"Index Scan " + checkout.QueueIndex}},
	}
	before := len(statementsIn(t, f.log))
	for i, part := range []int{0, 1000, 10, 2, 1} {
		for _, statement := range []string{
			`UPDATE windrow.datasets SET is_processed = true, processed_at = now(), available_at = now(), checkouts = 1,
				error = CASE WHEN ? > 0 AND id % greatest(?, 1) = 0 THEN 'x' END WHERE id <= 10000`,
			`UPDATE windrow.datasets SET available_at = now(), checkouts = 1,
				last_error = CASE WHEN ? > 0 AND id % greatest(?, 1) = 0 THEN 'x' END WHERE id > 10000`,
		} {
			check(t, f.raw.Exec(statement, part, part).Error)
		}
		if i > 0 {
			equal(t, "failures", len(f.failures()), rows/part)
		} else {
			f.wantFailures()
		}
		check(t, f.raw.Exec(`ANALYZE windrow.datasets`).Error)
		f.failures()
	}
	seen := map[string]int{}
	for _, statement := range statementsIn(t, f.log)[before:] {
		for name, want := range marks {
			if strings.Contains(statement.Text, want.mark) {
				seen[name]++
				if wrong := statement.Plan.Fault(want.scans); wrong != "" {
					t.Errorf("%s, run %d: %s in: %v", name, seen[name], wrong, statement.Plan)
				}
			}
		}
	}
	equal(t, "plans seen", fmt.Sprint(seen), fmt.Sprint(map[string]int{"failed": 10, "waiting": 10}))
}

func TestFailuresGoByThePartialIndexesOnSQLite(t *testing.T) {
	f := onSQLite(t)
	indexes := map[string]string{"failed": "failed_datasets_idx", "waiting": "unprocessed_datasets_idx"}
	judge := func(when string) {
		t.Helper()
		for name, statement := range checkout.SQLiteFailureStatements() {
			steps := strings.Join(f.explain(statement), "; ")
			if !strings.Contains(steps, "USING INDEX "+indexes[name]) || strings.Contains(steps, "TEMP B-TREE") {
				t.Errorf("%s, %s: %s", name, when, steps)
			}
		}
	}
	judge("empty")
	f.add(4000)
	for _, part := range []int{1000, 10, 1} {
		check(t, f.raw.Exec(`UPDATE datasets SET is_processed = id <= 4000 - ?, available_at = 1, processed_at = 1,
			error = CASE WHEN id % ? = 0 THEN 'x' END, last_error = CASE WHEN id % ? = 0 THEN 'x' END`, part, part, part).Error)
		_, err := f.Analyze(t.Context())
		check(t, err)
		f.raw = openRaw(t, sqlite.Open("file:"+f.url)) // statistics are read when a file is opened
		judge(fmt.Sprintf("one in %d", part))
	}
}
