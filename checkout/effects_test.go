package checkout_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/model"
)

// withTables gives the database a user's own tables: effects, and children, whose
// parents are looked for at COMMIT.
func (f *fixture) withTables() *fixture {
	f.t.Helper()
	for _, statement := range []string{
		`CREATE TABLE effects (id bigint NOT NULL)`,
		`CREATE TABLE parents (id bigint PRIMARY KEY)`,
		`CREATE TABLE children (parent bigint REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)`,
	} {
		check(f.t, f.raw.Exec(statement).Error)
	}
	return f
}

// effects are the rows whose effects stand, in the order in which they were run.
func (f *fixture) effects() []int64 {
	f.t.Helper()
	order := map[string]string{"postgres": `ctid`, "sqlite": `rowid`}[f.engine]
	var ids []int64
	check(f.t, f.raw.Raw(`SELECT id FROM effects ORDER BY `+order).Scan(&ids).Error)
	return ids
}

func (f *fixture) wantEffects(want ...int64) {
	f.t.Helper()
	if got := f.effects(); !slices.Equal(got, want) {
		f.t.Fatalf("effects of the rows %v, want %v", got, want)
	}
}

// writing is an outcome whose effect writes the row's id down.
func writing(in model.CheckIn) model.CheckIn {
	in.Effect = func(tx *gorm.DB) error { return tx.Exec(`INSERT INTO effects VALUES (?)`, in.ID).Error }
	return in
}

func with(in model.CheckIn, effect func(tx *gorm.DB) error) model.CheckIn {
	in.Effect = effect
	return in
}

func (f *fixture) claims(n int) []model.Claim {
	f.t.Helper()
	ids := f.add(n)
	claims, err := f.CheckOutKeys(f.t.Context(), "a", lease, ids[len(ids)-n:])
	check(f.t, err)
	equal(f.t, "claims", len(claims), n)
	slices.SortFunc(claims, func(a, b model.Claim) int { return int(a.ID - b.ID) })
	return claims
}

func TestEffectsHappenWithTheirCheckIn(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		c := f.withTables().claims(5)
		batch := []model.CheckIn{
			writing(failed(c[4], "bad")), done(c[1], `1`), writing(retry(c[2], time.Hour, "later")), writing(done(c[3], `3`)),
			with(done(c[0], `0`), func(tx *gorm.DB) error {
				var settled int
				err := tx.Raw(`SELECT count(*) FROM ` + f.datasets() + ` WHERE is_processed`).Scan(&settled).Error
				if settled != 4 {
					return fmt.Errorf("%d rows are settled before the first effect, want 4", settled)
				}
				return errors.Join(err, tx.Exec(`INSERT INTO effects VALUES (?)`, c[0].ID).Error)
			}),
		}
		receipt := f.checkIn(batch...)
		equal(t, "lost or replayed", len(receipt.Lost)+receipt.Replayed, 0)
		f.wantEffects(c[0].ID, c[2].ID, c[3].ID, c[4].ID)
		for i, want := range []model.State{model.Done, model.Done, model.Waiting, model.Done, model.Failed} {
			f.wantState(c[i].ID, want)
		}
		equal(t, "replayed when sent again", f.checkIn(batch...).Replayed, 5)
		f.wantEffects(c[0].ID, c[2].ID, c[3].ID, c[4].ID)
	})
}

func TestOnlyTheRowsThatACheckInSettlesHaveTheirEffects(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		c := f.withTables().claims(4)
		f.checkIn(done(c[1], `1`)) // whose answer was lost, say
		f.expire()
		newer := f.checkOutOne("b", c[2].ID)
		again := f.checkOutOne("a", c[3].ID) // the same holder, anew

		receipt := f.checkIn(writing(done(again, `"new"`)), writing(done(c[0], `0`)), writing(done(c[1], `1`)),
			writing(done(c[2], `2`)), with(done(c[3], `"old"`), func(*gorm.DB) error { return errors.New("the old ticket's effect") }))
		f.wantEffects(c[0].ID, c[3].ID)
		equal(t, "replayed", receipt.Replayed, 1)
		equal(t, "lost", len(receipt.Lost), 2)
		if !slices.Contains(receipt.Lost, c[2].Ticket()) || slices.Contains(receipt.Lost, c[0].Ticket()) {
			t.Fatalf("lost: %v", receipt.Lost)
		}
		equal(t, "result", string(f.row(c[3].ID).Result), `"new"`)
		equal(t, "lost of the newer", len(f.checkIn(writing(done(newer, `2`))).Lost), 0)
		f.wantEffects(c[0].ID, c[3].ID, c[2].ID)

		// Nobody's effect is due: it is a check-in like any other.
		equal(t, "lost", len(f.checkIn(writing(done(c[2], `2`))).Lost), 1)
	})
}

// Each fails, and says so by what the test looks for.
var failingEffects = map[string]struct {
	effect func(tx *gorm.DB) error
	want   string
}{
	"an error":               {func(*gorm.DB) error { return errors.New("no stamps left") }, "the effect failed: no stamps left"},
	"a panic":                {func(*gorm.DB) error { panic("oh no") }, "the effect failed: panic: oh no"},
	"the end of a goroutine": {func(*gorm.DB) error { runtime.Goexit(); return nil }, "Goexit"},
	"a constraint": {func(tx *gorm.DB) error {
		return errors.Join(insertParent(tx), insertParent(tx))
	}, "constraint"},
	"a constraint at COMMIT":     {insertOrphan, "constraint"},
	"a failure that is ignored":  {ignoring(insertParent, insertParent), "it went on after a failure"},
	"going on after a failure":   {ignoring(insertParent, insertParent, insertOne), "it went on after a failure"},
	"a look after a failure":     {ignoring(insertParent, insertParent, look), "it went on after a failure"},
	"a table that isn't there":   {func(tx *gorm.DB) error { return tx.Exec(`INSERT INTO nowhere VALUES (1)`).Error }, "nowhere"},
	"COMMIT":                     {func(tx *gorm.DB) error { return tx.Commit().Error }, "must not commit"},
	"COMMIT, ignored":            {ignoring(func(tx *gorm.DB) error { return tx.Commit().Error }), "must not commit"},
	"ROLLBACK, ignored":          {ignoring(func(tx *gorm.DB) error { return tx.Rollback().Error }), "must not commit"},
	"some other service":         {func(*gorm.DB) error { return &net.OpError{Op: "dial", Err: io.ErrUnexpectedEOF} }, "dial"},
	"some other job":             {func(*gorm.DB) error { return fmt.Errorf("%w: elsewhere", model.ErrUnavailable) }, "elsewhere"},
	"a time limit of its own":    {func(*gorm.DB) error { return context.DeadlineExceeded }, "deadline"},
	"an error in a transaction":  {nestedIn(insertParent, insertParent), "constraint"},
	"an error that says nothing": {func(*gorm.DB) error { return errors.New("") }, "the effect failed"},
}

func insertOne(tx *gorm.DB) error    { return tx.Exec(`INSERT INTO effects VALUES (0)`).Error }
func insertParent(tx *gorm.DB) error { return tx.Exec(`INSERT INTO parents VALUES (1)`).Error }
func insertOrphan(tx *gorm.DB) error { return tx.Exec(`INSERT INTO children VALUES (77)`).Error }
func look(tx *gorm.DB) error {
	var n int
	return tx.Raw(`SELECT count(*) FROM effects`).Row().Scan(&n)
}

func ignoring(steps ...func(tx *gorm.DB) error) func(tx *gorm.DB) error {
	return func(tx *gorm.DB) error {
		for _, step := range steps {
			_ = step(tx)
		}
		return nil
	}
}

func nestedIn(steps ...func(tx *gorm.DB) error) func(tx *gorm.DB) error {
	return func(tx *gorm.DB) error {
		return tx.Transaction(func(tx *gorm.DB) error {
			for _, step := range steps {
				if err := step(tx); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func TestAFailedEffectUndoesItsBatch(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		f.withTables()
		for name, tt := range failingEffects {
			t.Run(name, func(t *testing.T) {
				f := *f
				f.t = t
				c := f.claims(3)
				_, err := f.CheckIn(t.Context(), []model.CheckIn{
					writing(done(c[0], `0`)), with(done(c[1], `1`), tt.effect), done(c[2], `2`)})
				f.wantEffectError(err, tt.want)
				f.wantEffects()
				for _, c := range c {
					f.wantState(c.ID, model.InFlight)
				}
				receipt := f.checkIn(failed(c[1], err.Error()), writing(done(c[0], `0`)), done(c[2], `2`))
				equal(t, "lost or replayed", len(receipt.Lost)+receipt.Replayed, 0)
				f.wantEffects(c[0].ID)
				f.wantNothingOpen()
				for _, table := range []string{"effects", "children", "parents"} {
					check(t, f.raw.Exec(`DELETE FROM `+table).Error)
				}
			})
		}
	})
}

// wantEffectError demands that the row is to blame, whatever else the cause may be.
func (f *fixture) wantEffectError(err error, want string) {
	f.t.Helper()
	if !errors.Is(err, model.ErrEffect) || !strings.Contains(err.Error(), want) {
		f.t.Fatalf("got %v, want ErrEffect and %q", err, want)
	}
	for _, never := range []string{"INSERT INTO", "commit: commit"} {
		if strings.Contains(err.Error(), never) {
			f.t.Fatalf("%v holds %q", err, never)
		}
	}
	for _, other := range []error{model.ErrRefused, model.ErrSchema} {
		if errors.Is(err, other) {
			f.t.Fatalf("%v is %v as well", err, other)
		}
	}
}

// wantNothingOpen demands that no transaction has been left behind.
func (f *fixture) wantNothingOpen() {
	f.t.Helper()
	if f.engine == "postgres" {
		f.await(`SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in %'`)
	}
}

// What PostgreSQL refuses of an effect's values says nothing about the batch's.
func TestAValueRefusedToAnEffectIsTheEffects(t *testing.T) {
	f := onPostgres(t, checkout.Options{}).withTables()
	c := f.claims(1)
	for name, effect := range map[string]func(tx *gorm.DB) error{
		"returned": func(tx *gorm.DB) error { return tx.Exec(`SELECT CAST('{' AS jsonb)`).Error },
		"ignored while reading": func(tx *gorm.DB) error {
			rows, err := tx.Raw(`SELECT 1 / (3 - n) FROM generate_series(1, 3) AS n`).Rows()
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() { // and never asks how it ended
			}
			return nil
		},
	} {
		_, err := f.CheckIn(t.Context(), []model.CheckIn{with(done(c[0], `1`), effect)})
		if !errors.Is(err, model.ErrEffect) || errors.Is(err, model.ErrRefused) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	f.wantState(c[0].ID, model.InFlight)
	_, err := f.CheckIn(t.Context(), []model.CheckIn{writing(done(c[0], `NaN`))})
	if !errors.Is(err, model.ErrRefused) || errors.Is(err, model.ErrEffect) {
		t.Errorf("a refused result: got %v", err)
	}
	f.wantEffects()
}

func TestWhatAnEffectMayDo(t *testing.T) {
	effects := map[string]func(tx *gorm.DB) error{
		"a nested transaction": nestedIn(insertOne, insertOne),
		"a savepoint of its own": func(tx *gorm.DB) error {
			err := errors.Join(insertOne(tx), insertOne(tx), insertParent(tx), tx.Exec(`SAVEPOINT before`).Error)
			if insertParent(tx) == nil {
				return errors.New("no failure")
			}
			return errors.Join(err, tx.Exec(`rollback to savepoint before`).Error)
		},
		"a failure that is no statement's": func(tx *gorm.DB) error {
			var row struct{ ID int64 }
			if err := tx.Table("parents").First(&row).Error; !errors.Is(err, gorm.ErrRecordNotFound) {
				return fmt.Errorf("got %w", err)
			}
			return errors.Join(insertOne(tx), insertOne(tx))
		},
		"rows left open": func(tx *gorm.DB) error {
			err := errors.Join(insertOne(tx), insertOne(tx))
			rows, failed := tx.Raw(`SELECT id FROM effects`).Rows()
			if failed == nil {
				rows.Next()
			}
			return errors.Join(err, failed)
		},
		"a prepared statement": func(tx *gorm.DB) error {
			insert, err := tx.Statement.ConnPool.PrepareContext(tx.Statement.Context, `INSERT INTO effects VALUES (0)`)
			if err != nil {
				return err
			}
			defer insert.Close()
			_, first := insert.Exec()
			_, second := insert.Exec()
			return errors.Join(first, second)
		},
	}
	onEach(t, func(t *testing.T, f *fixture) {
		f.withTables()
		for name, effect := range effects {
			t.Run(name, func(t *testing.T) {
				f := *f
				f.t = t
				f.checkIn(with(done(f.claims(1)[0], `1`), effect))
				f.wantEffects(0, 0)
				f.wantNothingOpen()
				check(t, f.raw.Exec(`DELETE FROM effects`).Error)
				check(t, f.raw.Exec(`DELETE FROM parents`).Error)
			})
		}
	})
}

// Not even on a database that was opened otherwise: what a nested transaction has
// done stays, as a part of the whole.
func TestANestedTransactionOfAnEffectMakesNoSavepoint(t *testing.T) {
	f := onPostgres(t, checkout.Options{}).withTables()
	c := f.claims(1)[0]
	s, err := checkout.NewPostgres(t.Context(), f.raw, f.opts)
	check(t, err)
	_, err = s.CheckIn(t.Context(), []model.CheckIn{with(done(c, `1`), func(tx *gorm.DB) error {
		_ = nestedIn(insertOne, func(*gorm.DB) error { return errors.New("not to be undone") })(tx)
		return insertOne(tx)
	})})
	check(t, err)
	f.wantEffects(0, 0)
}

// In SQLite a failed statement may end the transaction, and what follows would be
// stored at once.
func TestNothingOfAnEffectOutlivesATransactionThatItHasLost(t *testing.T) {
	f := onSQLite(t).withTables()
	c := f.claims(1)[0]
	_, err := f.CheckIn(t.Context(), []model.CheckIn{with(done(c, `1`), ignoring(
		insertParent,
		func(tx *gorm.DB) error { return tx.Exec(`INSERT OR ROLLBACK INTO parents VALUES (1)`).Error },
		insertOne,
		func(tx *gorm.DB) error { return tx.Raw(`INSERT INTO effects VALUES (0) RETURNING id`).Row().Err() },
	))})
	f.wantEffectError(err, "UNIQUE")
	f.wantEffects()
	f.wantState(c.ID, model.InFlight)
	f.checkIn(writing(done(c, `1`)))
}

// Whoever keeps an effect's tx for later gets nothing done by it.
func TestAnEffectsTransactionIsNoLongerItsOwnAfterwards(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		c := f.withTables().claims(2)
		var kept *gorm.DB
		f.checkIn(
			with(done(c[0], `0`), func(tx *gorm.DB) error { kept = tx; return nil }),
			with(done(c[1], `1`), func(*gorm.DB) error {
				if insertOne(kept) == nil {
					return errors.New("the first effect's transaction still serves")
				}
				return nil
			}))
		f.wantEffects()
	})
}

func TestManyCheckInsOfOneTicketHaveOneEffect(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		c := f.withTables().claims(2)
		batch := []model.CheckIn{writing(done(c[0], `0`)), writing(retry(c[1], 0, "x"))}
		var running sync.WaitGroup
		receipts := make(chan model.Receipt, 8)
		begin := make(chan struct{})
		for _, s := range []store{f.store, f.open(), f.open(), f.open()} {
			for range 2 {
				running.Go(func() {
					<-begin
					receipt, err := s.CheckIn(t.Context(), batch)
					if err != nil {
						t.Error(err)
					}
					receipts <- receipt
				})
			}
		}
		close(begin)
		running.Wait()
		close(receipts)
		replayed := 0
		for receipt := range receipts {
			replayed += receipt.Replayed
			equal(t, "lost", len(receipt.Lost), 0)
		}
		equal(t, "replayed", replayed, 14)
		f.wantEffects(c[0].ID, c[1].ID)
	})
}
