package checkout_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/model"
)

// seedVariable repeats the choices of an earlier run of the fleet, though not how
// its members fell in with each other.
const seedVariable = "WINDROW_TEST_SEED"

// TestAFleetChecksEachRowInOnce lets eight workers, each with connections of its
// own, take, lose, keep too long and finish rows, while leases run out at random.
// What each of them was told is compared with the table at the end.
func TestAFleetChecksEachRowInOnce(t *testing.T) {
	for name, f := range map[string]func(*testing.T, checkout.Options) *fixture{
		"postgres": func(t *testing.T, o checkout.Options) *fixture { return onPostgres(t, o) },
		"postgres without the traffic light": func(t *testing.T, o checkout.Options) *fixture {
			o.NoTrafficLight = true
			return onPostgres(t, o)
		},
		"sqlite": func(t *testing.T, o checkout.Options) *fixture { return onSQLite(t) },
	} {
		t.Run(name, func(t *testing.T) {
			var conflicts tally
			fl := &fleet{fixture: f(t, conflicts.options()), seed: seed(t), accepted: map[int64][]string{}}
			ids := fl.add(2000)
			slow := fl.member(8) // one at least comes too late
			kept, err := slow.store.CheckOut(t.Context(), slow.holder(), time.Hour, 10)
			check(t, err)
			fl.expire()
			var members errgroup.Group
			for n := range 8 {
				m := fl.member(n)
				members.Go(func() error { return m.run(t.Context()) })
			}
			check(t, members.Wait())
			check(t, slow.finish(t.Context(), kept))
			fl.wantOneResultEach(ids)
			fl.wantSound(int64(len(ids)))
			t.Logf("%d check-ins were lost; conflicts: %v", fl.lost, conflicts.n)
			if fl.lost == 0 {
				t.Error("no check-in came too late: nothing was put to the test")
			}
		})
	}
}

func seed(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		check(t, err)
	}
	t.Logf("%s=%d", seedVariable, seed)
	return seed
}

type fleet struct {
	*fixture
	seed uint64

	mu       sync.Mutex
	accepted map[int64][]string // results that a store said it has stored, by row
	lost     int
}

func (fl *fleet) note(batch []model.CheckIn, receipt model.Receipt) {
	lost := map[int64]bool{}
	for _, t := range receipt.Lost {
		lost[t.ID] = true
	}
	fl.mu.Lock()
	defer fl.mu.Unlock()
	fl.lost += len(lost)
	for _, in := range batch {
		if !lost[in.ID] {
			fl.accepted[in.ID] = append(fl.accepted[in.ID], string(in.Result))
		}
	}
}

func (fl *fleet) wantOneResultEach(ids []int64) {
	fl.t.Helper()
	table, err := fl.whole()
	check(fl.t, err)
	equal(fl.t, "rows", len(table), len(ids))
	for _, id := range ids {
		row, told := table[id], fl.accepted[id]
		if len(told) != 1 || row.Result != told[0] || !row.Processed {
			fl.t.Fatalf("row %d: check-ins said to be stored: %v; the row is %+v", id, told, row)
		}
		if row.Attempts != row.Checkouts || row.Losses != row.Checkouts-1 {
			fl.t.Fatalf("row %d was miscounted: %+v", id, row)
		}
	}
}

// member is one worker.
type member struct {
	fleet  *fleet
	store  store
	random *rand.Rand
	name   string
	born   int
	serial int
	late   []model.Claim // kept too long
}

func (fl *fleet) member(n int) *member {
	return &member{
		fleet: fl, store: fl.open(), name: fmt.Sprintf("w%d", n),
		random: rand.New(rand.NewPCG(fl.seed, uint64(n))),
	}
}

func (m *member) holder() string { return fmt.Sprintf("%s.%d", m.name, m.born) }

func (m *member) run(ctx context.Context) error {
	for {
		claims, err := m.store.CheckOut(ctx, m.holder(), time.Hour, 1+m.random.IntN(40))
		if err != nil {
			return err
		}
		if len(claims) == 0 {
			counts, err := m.store.Counts(ctx)
			if err != nil {
				return err
			}
			if counts.Unprocessed() == 0 {
				return m.finish(ctx, m.late)
			}
			if err := m.timePasses(ctx, 1); err != nil {
				return err
			}
			if _, err := m.store.Agenda(ctx); err != nil {
				return err
			}
			continue
		}
		if err := m.work(ctx, claims); err != nil {
			return err
		}
	}
}

// work does with its claims what happens to workers.
func (m *member) work(ctx context.Context, claims []model.Claim) error {
	switch m.random.IntN(10) {
	case 0: // it dies, and what it kept with it; another takes its place
		m.born++
		m.late = nil
		return nil
	case 1: // it is slow
		m.late = append(m.late, claims...)
		return m.timePasses(ctx, 2)
	case 2: // it comes too late
		claims = append(claims, m.late...)
		m.late = nil
	case 3:
		if _, err := m.store.Renew(ctx, time.Hour, ticketsOf(claims)); err != nil {
			return err
		}
	}
	return m.finish(ctx, claims)
}

func (m *member) finish(ctx context.Context, claims []model.Claim) error {
	batch := make([]model.CheckIn, 0, len(claims))
	taken := map[int64]bool{}
	for _, c := range claims {
		m.serial++
		if !taken[c.ID] {
			batch = append(batch, done(c, strconv.Quote(fmt.Sprintf("%s/%d", m.holder(), m.serial))))
		}
		taken[c.ID] = true
	}
	receipt, err := m.store.CheckIn(ctx, batch)
	if err != nil {
		return err
	}
	if receipt.Replayed > 0 {
		return fmt.Errorf("%d of a new batch were taken for replayed", receipt.Replayed)
	}
	m.fleet.note(batch, receipt)
	if m.random.IntN(5) > 0 {
		return nil
	}
	for i := range batch { // as if the answer had been lost; these must not be stored
		batch[i].Result = json.RawMessage(`"again"`)
	}
	again, err := m.store.CheckIn(ctx, batch)
	if err == nil && (again.Replayed != len(batch)-len(receipt.Lost) || len(again.Lost) != len(receipt.Lost)) {
		return fmt.Errorf("%d check-ins, sent twice: first %+v, then %+v", len(batch), receipt, again)
	}
	return err
}

// timePasses lets the leases of every n-th row run out, but for rows that
// somebody is writing just now.
func (m *member) timePasses(ctx context.Context, n int) error {
	statement := `
		UPDATE datasets SET available_at = (unixepoch() - 1) * 1000000
		WHERE NOT is_processed AND checked_out_by IS NOT NULL AND available_at > unixepoch() * 1000000 AND id % ? = ?`
	if m.fleet.engine == "postgres" {
		statement = `
			UPDATE windrow.datasets SET available_at = clock_timestamp() - interval '1 second'
			WHERE id IN (
				SELECT id FROM windrow.datasets
				WHERE NOT is_processed AND checked_out_by IS NOT NULL AND available_at > clock_timestamp() AND id % ? = ?
				FOR UPDATE SKIP LOCKED
			)`
	}
	return m.fleet.raw.WithContext(ctx).Exec(statement, n, m.random.IntN(n)).Error
}
