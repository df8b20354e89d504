package checkout_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
	"github.com/windrow-go/windrow/model"
)

// stall makes a store of its own call what, and stops its transaction amid its
// UPDATE, with its locks, while neither side hears of the other any more: as when
// the worker is suspended or cut off. COMMIT is on its way already, so that the
// transaction ends as soon as the gate is opened, without the worker.
//
// A trigger makes the UPDATE wait at its end for an advisory lock; the proxy that
// the store speaks through swallows everything by then.
func (f *fixture) stall(what func(ctx context.Context, s store) error) (openGate func()) {
	f.t.Helper()
	proxy, through := pgtest.Proxy(f.t, f.url)
	victim := *f
	victim.url = through + "&application_name=stalled"
	s := victim.open()
	for _, statement := range []string{
		`CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN
				IF current_setting('application_name') = 'stalled' THEN
					PERFORM pg_advisory_xact_lock_shared(4711);
				END IF;
				RETURN NULL;
			END $$`,
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
			f.t.Error("the stalled worker has heard an answer")
		}
	})
	f.await(atGateSQL)
	proxy.HalfOpen(true)
	return func() { check(f.t, gate.Commit().Error) }
}

const atGateSQL = `
SELECT count(*) = 1
FROM pg_locks AS l
JOIN pg_database AS d ON d.oid = l.database
WHERE l.locktype = 'advisory' AND l.objid = 4711 AND NOT l.granted AND d.datname = current_database()`

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

// A transaction waits for a stalled one no longer than the lock timeout, 1 s; the
// rest is a slow machine's.
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
			openGate := f.stall(func(ctx context.Context, s store) error {
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
			openGate()
			f.wantBackByTheirLease(ids[:3])
		})
	}
}

// When only stalled rows are left, a check-out comes back empty.
func TestWhenAllRowsAreStalledACheckOutComesBackEmpty(t *testing.T) {
	t.Parallel()
	f := onPostgres(t, checkout.Options{})
	ids := f.add(3)
	openGate := f.stall(func(ctx context.Context, s store) error {
		_, err := s.CheckOutKeys(ctx, "stopped", lease, ids)
		return err
	})
	asked := time.Now()
	equal(t, "rows", len(f.checkOut(f.store, "b", 3)), 0)
	if took := time.Since(asked); took > patience {
		t.Fatalf("a check-out took %v", took)
	}
	openGate()
	f.wantBackByTheirLease(ids)
}

// wantBackByTheirLease demands that the stopped worker's check-out was committed
// without it, and that others get the rows when its lease is over.
func (f *fixture) wantBackByTheirLease(ids []int64) {
	f.t.Helper()
	f.await(fmt.Sprintf(`SELECT count(*) = %d FROM windrow.datasets WHERE checked_out_by = 'stopped'`, len(ids)))
	f.expire()
	_, err := f.CheckOutKeys(f.t.Context(), "c", lease, ids)
	check(f.t, err)
	for _, id := range ids {
		row := f.row(id)
		equal(f.t, "holder", *row.CheckedOutBy, "c")
		equal(f.t, "token", row.Checkouts, 2)
		equal(f.t, "losses", row.Losses, 1)
	}
}

// The same check-in, sent once more by whoever took the stalled worker's place,
// waits, is retried, and finds that the first one was stored.
func TestAStalledCheckInBlocksNobodyForLong(t *testing.T) {
	t.Parallel()
	f := onPostgres(t, checkout.Options{})
	ids := f.add(2)
	claims, err := f.CheckOutKeys(t.Context(), "a", lease, ids)
	check(t, err)
	openGate := f.stall(func(ctx context.Context, s store) error {
		_, err := s.CheckIn(ctx, []model.CheckIn{done(claims[0], `"stalled"`)})
		return err
	})
	asked := time.Now()
	equal(t, "lost of another row", len(f.checkIn(done(claims[1], `1`)).Lost), 0)
	if took := time.Since(asked); took > patience {
		t.Fatalf("the check-in of another row took %v", took)
	}

	again := make(chan model.Receipt, 1)
	go func() {
		receipt, _ := f.CheckIn(t.Context(), []model.CheckIn{done(claims[0], `"again"`)})
		again <- receipt
	}()
	f.await(`SELECT count(*) = 1 FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'windrow' AND wait_event_type = 'Lock'`)
	openGate()
	equal(t, "replayed", (<-again).Replayed, 1)
	equal(t, "result", string(f.row(ids[0]).Result), `"stalled"`)
}
