package checkout_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/pgcluster"
	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
	"github.com/windrow-go/windrow/model"
)

// hot are the statements whose plans are judged: how to know them in the log,
// and what may read the table.
var hot = map[string]struct {
	mark  string
	scans []string
}{
	"peek fresh":    {"(available_at, id) > (TIMESTAMPTZ 'epoch'", peeks},
	"fresh bounds":  {"AS high", peeks},
	"peek due":      {"AND available_at > TIMESTAMPTZ 'epoch'", peeks},
	"agenda":        {"AS next", peeks},
	"newest claim":  {"ORDER BY available_at DESC, id DESC\nLIMIT 1", peeks},
	"claim":         {"attempts = d.attempts + 1", byKey},
	"check in":      {"is_processed = u.verdict <= 2", byKey},
	"check in done": {"THEN ARRAY(SELECT id FROM settled)", byKey},
	"renew":         {"SET available_at = clock_timestamp()", byKey},
	"what was lost": {"SELECT id, checkouts, is_processed, checked_out_by", byKey},
	"put back":      {"WITH picked AS", byKeyOrFailed},
	"find to redo":  {"FILTER (WHERE l.fits)", byKeyOrFailed},
}

var (
	peeks         = checkout.ScansBy(checkout.QueueIndex)
	byKey         = checkout.ScansBy(checkout.KeyIndex)
	byKeyOrFailed = append(checkout.ScansBy(checkout.KeyIndex), "Index Scan failed_datasets_idx")
)

const tableSize = 200_000

// explained is a job on a server that logs the plan of every statement of its
// stores. Its table was analyzed when it was empty, and has grown since.
func explained(t *testing.T) *fixture {
	cluster := pgtest.Cluster(t, pgcluster.Options{Settings: map[string]string{
		"session_preload_libraries": "auto_explain", "auto_explain.log_format": "json",
	}})
	check(t, cluster.CreateDatabase(t.Context(), "job", ""))
	f := postgresAt(t, cluster.URL("job"), checkout.Options{})
	f.url += "&auto_explain.log_min_duration=0"
	f.log = cluster.Log()
	for _, statement := range []string{
		`ALTER TABLE windrow.datasets SET (autovacuum_enabled = false)`,
		`ANALYZE windrow.datasets`,
		fmt.Sprintf(`INSERT INTO windrow.datasets (data)
			SELECT jsonb_build_object('n', n, 'text', repeat(md5(CAST(n AS text)), 5)) FROM generate_series(1, %d) AS n`, tableSize),
	} {
		check(t, f.raw.Exec(statement).Error)
	}
	return f
}

// process finishes the rows up to id, as if workers had, and lets some of the
// others be in the hands of workers, living and dead.
func (f *fixture) process(id int) {
	f.t.Helper()
	check(f.t, f.raw.Exec(`
		UPDATE windrow.datasets
		SET is_processed = true, processed_at = clock_timestamp(), available_at = clock_timestamp() + interval '1 minute',
			last_checkout = clock_timestamp(), checkouts = 1, attempts = 1, checked_out_by = 'a', result = '1',
			error = CASE WHEN id % 1000 = 0 THEN 'x' END
		WHERE id <= ? AND NOT is_processed`, id).Error)
	check(f.t, f.raw.Exec(`
		UPDATE windrow.datasets
		SET available_at = clock_timestamp() + CASE WHEN id % 3 = 0 THEN interval '-1 second' ELSE interval '1 hour' END,
			checkouts = 1, attempts = 1, checked_out_by = 'a'
		WHERE id > ? AND id <= ? AND NOT is_processed`, id, id+min(300, (tableSize-id)/2)).Error)
}

// runs is how often each statement is run on one connection: from the sixth time
// on, the server may take a generic plan.
const runs = 9

func TestPlans(t *testing.T) {
	f := explained(t)
	for _, done := range []int{0, tableSize / 2, tableSize / 100 * 99, tableSize - tableSize/10000} {
		f.process(done)
		f.exercise(done)
	}
	f.judge()
	check(t, f.raw.Exec(`ANALYZE windrow.datasets`).Error)
	f.exercise(tableSize - tableSize/10000)
	f.judge()
}

// exercise runs every statement, with batches of different sizes.
func (f *fixture) exercise(processed int) {
	f.t.Helper()
	s := f.open().(*checkout.Postgres)
	ctx := f.t.Context()
	for run := range runs {
		for _, n := range []int{256, 4096} {
			_, err := s.PeekFresh(ctx, int64(processed/2), n)
			check(f.t, err)
			_, err = s.PeekDue(ctx, model.Sentinel, n)
			check(f.t, err)
			_, err = s.PeekDue(ctx, time.Now().Add(-time.Minute), n)
			check(f.t, err)
		}
		_, _, _, err := s.FreshBounds(ctx)
		check(f.t, err)
		_, err = s.Agenda(ctx)
		check(f.t, err)

		check(f.t, s.Wait(ctx, 0))

		keys := [][]int64{neighbours(processed+350+run, 3), neighbours(processed+400+1100*run, 1000), spread(10, tableSize-run)}[run%3]
		claims, err := s.CheckOutKeys(ctx, "b", lease, keys)
		check(f.t, err)
		f.finish(s, append(claims, staleClaim(run)))
		_, err = s.Reprocess(ctx, checkout.Selection{Failed: true}, checkout.ReprocessOptions{By: "me"})
		check(f.t, err)
	}
}

// finish ends claims in every way; a row that is released and checked in again has
// both of its outcomes asked for.
func (f *fixture) finish(s store, claims []model.Claim) {
	f.t.Helper()
	_, err := s.Renew(f.t.Context(), lease, ticketsOf(claims))
	check(f.t, err)
	check(f.t, s.Release(f.t.Context(), ticketsOf(claims[:1])))
	batch := make([]model.CheckIn, len(claims))
	for i, c := range claims {
		batch[i] = done(c, `1`)
	}
	if len(claims) > 2 {
		batch[1] = failed(claims[1], "x")
	}
	_, err = s.CheckIn(f.t.Context(), batch)
	check(f.t, err)
}

func neighbours(from, n int) []int64 {
	keys := make([]int64, n)
	for i := range keys {
		keys[i] = int64(from + i)
	}
	return keys
}

// staleClaim is on a row that has long been finished, or never was claimed.
func staleClaim(run int) model.Claim {
	var c model.Claim
	c.ID, c.Checkouts, c.Holder = int64(1+run), 99, "b"
	return c
}

// judge looks at every plan that the log has, the sixth ones among them.
func (f *fixture) judge() {
	f.t.Helper()
	seen := map[string]map[string]int{}
	for name := range hot {
		seen[name] = map[string]int{}
	}
	for _, statement := range statementsIn(f.t, f.log) {
		for name, want := range hot {
			if !strings.Contains(statement.Text, want.mark) {
				continue
			}
			seen[name][statement.Session]++
			if wrong := statement.Plan.Fault(want.scans); wrong != "" {
				f.t.Errorf("%s, run %d: %s in: %v", name, seen[name][statement.Session], wrong, statement.Plan)
			}
		}
	}
	for name, sessions := range seen {
		if most := slices.Max(append(slices.Collect(maps.Values(sessions)), 0)); most < 6 {
			f.t.Errorf("%s was run only %d times in one session", name, most)
		}
	}
}
