package checkout_test

import (
	"context"
	"testing"
	"time"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
	"github.com/windrow-go/windrow/model"
)

// stall makes a store of its own call what, and stops it between its UPDATE and
// its COMMIT: the server has the transaction with its locks, and neither side
// hears of the other any more. It returns the time at which the server began to
// wait.
//
// A trigger makes the UPDATE wait at its end for an advisory lock, until the
// proxy that the store speaks through swallows everything.
func (f *fixture) stall(what func(ctx context.Context, s store) error) time.Time {
	f.t.Helper()
	proxy, through := pgtest.Proxy(f.t, f.url)
	victim := *f
	victim.url = through
	s := victim.open()
	for _, statement := range []string{
		`CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN PERFORM pg_advisory_xact_lock_shared(4711); RETURN NULL; END $$`,
		`CREATE TRIGGER gate AFTER UPDATE ON windrow.datasets FOR EACH STATEMENT EXECUTE FUNCTION wait_at_gate()`,
	} {
		check(f.t, f.raw.Exec(statement).Error)
	}
	gate := f.raw.Begin()
	check(f.t, gate.Exec(`SELECT pg_advisory_xact_lock(4711)`).Error)

	ctx, giveUp := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- what(ctx, s) }()
	f.t.Cleanup(func() {
		giveUp()
		proxy.HalfOpen(false)
		proxy.CutAll()
		if err := <-ended; err == nil {
			f.t.Error("the stalled transaction was committed")
		}
	})
	f.await(atGateSQL)
	proxy.HalfOpen(true)
	check(f.t, gate.Commit().Error)
	f.await(stalledSQL)
	return time.Now()
}

const atGateSQL = `
SELECT count(*) = 1
FROM pg_locks AS l
JOIN pg_database AS d ON d.oid = l.database
WHERE l.locktype = 'advisory' AND l.objid = 4711 AND NOT l.granted AND d.datname = current_database()`

const stalledSQL = `
SELECT count(*) = 1
FROM pg_stat_activity
WHERE datname = current_database() AND state = 'idle in transaction' AND application_name = 'windrow'`

// await asks until the answer is true, and lets the server wait in between.
func (f *fixture) await(question string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 20*time.Second)
	defer cancel()
	for answer := false; !answer; {
		err := f.raw.WithContext(ctx).Raw(`SELECT answer FROM (` + question + `) AS q (answer), pg_sleep(0.01)`).Scan(&answer).Error
		if err != nil {
			f.t.Fatalf("still not so: %s: %v", question, err)
		}
	}
}

// A transaction waits for a stalled one no longer than the lock timeout, 1 s, and
// a stalled one is ended after 5 s or half a lease; the rest is a slow machine's.
const patience = 1500 * time.Millisecond

func TestAStalledCheckOutBlocksNobodyForLong(t *testing.T) {
	for name, opts := range map[string]checkout.Options{
		"with the traffic light": {},
		"without it":             {NoTrafficLight: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := onPostgres(t, opts)
			ids := f.add(300)
			check(t, f.raw.Exec(`UPDATE windrow.datasets SET id = id + 1000000 WHERE id > ?`, ids[2]).Error)
			began := f.stall(func(ctx context.Context, s store) error {
				_, err := s.CheckOutKeys(ctx, "stopped", lease, ids[:3])
				return err
			})

			other := f.open()
			for got := int64(0); got < 1000000; {
				asked := time.Now()
				claims := f.checkOut(other, "b", 1)
				if took := time.Since(asked); took > 2*patience {
					t.Fatalf("a check-out took %v", took)
				}
				for _, c := range claims {
					got = c.ID
				}
			}

			f.await(`SELECT NOT EXISTS (` + stalledSQL + ` HAVING count(*) = 1)`)
			if took := time.Since(began); took > 5*time.Second+patience {
				t.Fatalf("the stalled transaction was ended only after %v", took)
			}
			f.wantAllClaimable("b", ids[:3])
		})
	}
}

// When only stalled rows are left, a check-out comes back empty; and a short
// lease, 2 s, lets them go after 1 s.
func TestWhenAllRowsAreStalledACheckOutComesBackEmpty(t *testing.T) {
	t.Parallel()
	f := onPostgres(t, checkout.Options{})
	ids := f.add(3)
	began := f.stall(func(ctx context.Context, s store) error {
		_, err := s.CheckOutKeys(ctx, "stopped", 2*time.Second, ids)
		return err
	})
	asked := time.Now()
	equal(t, "rows", len(f.checkOut(f.store, "b", 3)), 0)
	if took := time.Since(asked); took > patience {
		t.Fatalf("a check-out took %v", took)
	}
	f.await(`SELECT NOT EXISTS (` + stalledSQL + ` HAVING count(*) = 1)`)
	if took := time.Since(began); took > time.Second+patience {
		t.Fatalf("the stalled transaction was ended only after %v", took)
	}
	f.wantAllClaimable("b", ids)
}

// wantAllClaimable demands that holder has, or gets, the rows at their first
// check-out: that of the stalled worker was rolled back.
func (f *fixture) wantAllClaimable(holder string, ids []int64) {
	f.t.Helper()
	_, err := f.CheckOutKeys(f.t.Context(), holder, lease, ids)
	check(f.t, err)
	for _, id := range ids {
		row := f.row(id)
		equal(f.t, "holder", *row.CheckedOutBy, holder)
		equal(f.t, "token", row.Checkouts, 1)
	}
}

func TestAStalledCheckInBlocksNobodyForLong(t *testing.T) {
	t.Parallel()
	f := onPostgres(t, checkout.Options{})
	ids := f.add(2)
	claims, err := f.CheckOutKeys(t.Context(), "a", lease, ids)
	check(t, err)
	began := f.stall(func(ctx context.Context, s store) error {
		_, err := s.CheckIn(ctx, []model.CheckIn{done(claims[0], `"stalled"`)})
		return err
	})
	equal(t, "lost of another row", len(f.checkIn(done(claims[1], `1`)).Lost), 0)

	// The same check-in once more, by whoever took the stalled worker's place: it
	// waits, is retried, and goes in when the server has ended the stalled one.
	equal(t, "lost", len(f.checkIn(done(claims[0], `"again"`)).Lost), 0)
	if took := time.Since(began); took > 5*time.Second+2*patience {
		t.Fatalf("the check-in took %v", took)
	}
	equal(t, "result", string(f.row(ids[0]).Result), `"again"`)
}
