package checkout_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gorm.io/gorm"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/faultproxy"
	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
	"github.com/windrow-go/windrow/model"
)

// throughProxy opens the job once more, through a proxy.
func (f *fixture) throughProxy() (*fixture, *faultproxy.Proxy) {
	f.t.Helper()
	proxy, through := pgtest.Proxy(f.t, f.url)
	worker := *f
	worker.url = through
	worker.store = worker.open()
	return &worker, proxy
}

func TestEffectsOfACheckInCutAtItsCommitHappenOnce(t *testing.T) {
	tests := map[string]struct {
		when     faultproxy.When
		replayed int
	}{
		"before the server sees it":    {faultproxy.BeforeForward, 0},
		"after the server has done it": {faultproxy.AfterReply, 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := onPostgres(t, checkout.Options{}).withTables()
			c := f.claims(2)
			worker, proxy := f.throughProxy()
			batch := []model.CheckIn{writing(done(c[0], `0`)), writing(retry(c[1], 0, "x"))}
			proxy.CutAtCommit(1, tt.when, "unnest")
			_, err := worker.CheckIn(t.Context(), batch)
			wantUnavailable(t, err)
			equal(t, "cuts", proxy.Cuts(), 1)
			equal(t, "effects after the cut", len(f.effects()), tt.replayed)

			receipt := worker.checkIn(batch...)
			equal(t, "replayed", receipt.Replayed, tt.replayed)
			equal(t, "lost", len(receipt.Lost), 0)
			f.wantEffects(c[0].ID, c[1].ID)
		})
	}
}

func wantUnavailable(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, model.ErrUnavailable) || errors.Is(err, model.ErrEffect) {
		t.Fatalf("got %v, want ErrUnavailable and not ErrEffect", err)
	}
}

func TestAConnectionLostInAnEffectIsNotTheEffects(t *testing.T) {
	f := onPostgres(t, checkout.Options{}).withTables()
	c := f.claims(1)[0]
	worker, proxy := f.throughProxy()
	cut := func(*gorm.DB) error { proxy.CutAll(); return nil }
	for name, effect := range map[string]func(tx *gorm.DB) error{
		"returned":           func(tx *gorm.DB) error { return errors.Join(insertOne(tx), cut(tx), insertOne(tx)) },
		"returned as a text": func(tx *gorm.DB) error { _ = cut(tx); return fmt.Errorf("%v", insertOne(tx)) },
		"while reading": func(tx *gorm.DB) error {
			rows, err := tx.Raw(`SELECT repeat('x', 10000) FROM generate_series(1, 10000)`).Rows()
			if err != nil {
				return err
			}
			defer rows.Close()
			_ = cut(tx)
			for rows.Next() {
			}
			return rows.Err()
		},
		"ignored":                ignoring(insertOne, cut, insertOne),
		"not noticed till later": ignoring(insertOne, cut),
		"terminated": func(tx *gorm.DB) error {
			return tx.Exec(`SELECT pg_terminate_backend(pg_backend_pid())`).Error
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := worker.CheckIn(t.Context(), []model.CheckIn{with(done(c, `1`), effect)})
			wantUnavailable(t, err)
			f.wantEffects()
			f.wantState(c.ID, model.InFlight)
		})
	}
	worker.checkIn(writing(done(c, `1`)))
	f.wantEffects(c.ID)
}

func TestACheckInWithEffectsEndsWithItsContext(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		c := f.withTables().claims(1)[0]
		ctx, cancel := context.WithCancel(t.Context())
		_, err := f.CheckIn(ctx, []model.CheckIn{with(done(c, `1`), func(tx *gorm.DB) error {
			if err := insertOne(tx); err != nil {
				return err
			}
			cancel()
			<-tx.Statement.Context.Done()
			return errors.New("given up")
		})})
		if !errors.Is(err, context.Canceled) || errors.Is(err, model.ErrEffect) {
			t.Fatalf("got %v, want the context's error", err)
		}
		f.wantEffects()
		f.checkIn(writing(done(c, `1`)))
		f.wantEffects(c.ID)
		f.wantNothingOpen()
	})
}

func TestALostRaceRunsEffectsAgain(t *testing.T) {
	raise := func(state string) string {
		return `DO $$ BEGIN RAISE EXCEPTION 'made by the test' USING ERRCODE = '` + state + `'; END $$`
	}
	tests := map[string]struct {
		atCommit bool
		losing   func(tx *gorm.DB) error // the first two times
		reason   string
	}{
		"at COMMIT":      {true, func(*gorm.DB) error { return nil }, "serialization"},
		"at an effect":   {false, func(tx *gorm.DB) error { return tx.Exec(raise("40P01")).Error }, "deadlock"},
		"panicking":      {false, func(tx *gorm.DB) error { panic(tx.Exec(raise("55P03")).Error) }, "lock_timeout"},
		"without a word": {false, ignoring(func(tx *gorm.DB) error { return tx.Exec(raise("40001")).Error }), "serialization"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var seen tally
			f := onPostgres(t, seen.options()).withTables()
			c := f.claims(1)[0]
			if tt.atCommit {
				f.failCommits(2)
			}
			runs := 0
			receipt := f.checkIn(with(done(c, `1`), func(tx *gorm.DB) error {
				runs++
				if err := insertOne(tx); err != nil {
					return err
				}
				if runs <= 2 {
					return tt.losing(tx)
				}
				return nil
			}))
			equal(t, "lost or replayed", len(receipt.Lost)+receipt.Replayed, 0)
			equal(t, "runs", runs, 3)
			equal(t, "lost races", seen.of("check in: "+tt.reason), 2)
			f.wantEffects(0)
		})
	}
}

// The planner's settings are the check-in's; the timeouts are for the effects too.
func TestTheSettingsUnderWhichEffectsRun(t *testing.T) {
	f := onPostgres(t, checkout.Options{})
	f.checkIn(with(done(f.claims(1)[0], `1`), func(tx *gorm.DB) error {
		for name, want := range map[string]string{
			"enable_seqscan": "on", "enable_bitmapscan": "on", "enable_hashjoin": "on", "enable_mergejoin": "on",
			"lock_timeout": "10s", "idle_in_transaction_session_timeout": "15s", "transaction_isolation": "read committed",
		} {
			var got string
			if err := tx.Raw(`SELECT current_setting(?)`, name).Scan(&got).Error; err != nil || got != want {
				return fmt.Errorf("%s is %s, want %s (error: %v)", name, got, want, err)
			}
		}
		return nil
	}))
}

// It would be tried for ever if it counted as an outage.
func TestAnEffectThatLeavesItsTransactionIdleIsToBlame(t *testing.T) {
	f := onPostgres(t, checkout.Options{}).withTables()
	c := f.claims(1)[0]
	_, err := f.CheckIn(t.Context(), []model.CheckIn{with(done(c, `1`), func(tx *gorm.DB) error {
		var pid int
		if err := tx.Raw(`SELECT pg_backend_pid() FROM set_config('idle_in_transaction_session_timeout', '50ms', true)`).Scan(&pid).Error; err != nil {
			return err
		}
		f.await(fmt.Sprintf(`SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = %d`, pid))
		return nil
	})})
	f.wantEffectError(err, "without a statement for more than 15s")
	f.wantState(c.ID, model.InFlight)
}
