package checkout_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/txn"
	"github.com/windrow-go/windrow/model"
)

// tally counts the conflicts that a store tells of, by operation and reason.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *tally) options() checkout.Options {
	c.n = map[string]int{}
	return checkout.Options{OnConflict: func(op, reason string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.n[op+": "+reason]++
	}}
}

func (c *tally) of(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[what]
}

// failCommits makes the next k COMMITs of transactions that update datasets fail
// with 40001: a deferred trigger raises it, and counts in a sequence, which no
// rollback undoes.
func (f *fixture) failCommits(k int) {
	f.t.Helper()
	for _, statement := range []string{
		`DROP TRIGGER IF EXISTS fail ON windrow.datasets`,
		`DROP SEQUENCE IF EXISTS failures`,
		`CREATE SEQUENCE failures`,
		fmt.Sprintf(`CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN
				IF nextval('failures') <= %d THEN
					RAISE EXCEPTION 'made by the test' USING ERRCODE = '40001';
				END IF;
				RETURN NULL;
			END $$`, k),
		`CREATE CONSTRAINT TRIGGER fail AFTER UPDATE ON windrow.datasets
			DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail()`,
	} {
		check(f.t, f.raw.Exec(statement).Error)
	}
}

func TestConflictsAtCommitUseUpNoAttempts(t *testing.T) {
	var seen tally
	f := onPostgres(t, seen.options())
	ids := f.add(20)

	f.failCommits(3)
	var claims []model.Claim
	for len(claims) < len(ids) {
		got := f.checkOut(f.store, "a", len(ids))
		if len(got) == 0 {
			t.Fatalf("%d of %d rows handed out", len(claims), len(ids))
		}
		claims = append(claims, got...)
	}
	equal(t, "conflicts of check-outs", seen.of("check out: serialization"), 3)
	for _, c := range claims {
		equal(t, "attempts", c.Attempts, 1)
		equal(t, "token", c.Checkouts, 1)
		equal(t, "losses", c.Losses, 0)
	}

	f.failCommits(2)
	lost, err := f.Renew(t.Context(), lease, []model.Ticket{claims[0].Ticket()})
	check(t, err)
	equal(t, "lost", len(lost), 0)
	equal(t, "conflicts of renewals", seen.of("renew: serialization"), 2)

	f.failCommits(2)
	var batch []model.CheckIn
	for _, c := range claims {
		batch = append(batch, done(c, `1`))
	}
	receipt := f.checkIn(batch...)
	equal(t, "lost", len(receipt.Lost), 0)
	equal(t, "replayed", receipt.Replayed, 0)
	equal(t, "conflicts of check-ins", seen.of("check in: serialization"), 2)
	for _, id := range ids {
		row := f.row(id)
		equal(t, "attempts", row.Attempts, 1)
		equal(t, "checkouts", row.Checkouts, 1)
		equal(t, "processed", row.IsProcessed, true)
	}

	f.failCommits(2)
	out, err := f.Reprocess(t.Context(), checkout.Selection{All: true}, checkout.ReprocessOptions{By: "me"})
	check(t, err)
	equal(t, "put back", out.PutBack, int64(len(ids)))
	equal(t, "conflicts of the reprocess", seen.of("reprocess: serialization"), 2)
	equal(t, "round", f.row(ids[0]).Round, 1)
}

func TestALoadsConflictsAddNothingTwice(t *testing.T) {
	var seen tally
	f := onPostgres(t, seen.options())
	f.failCommits(0)
	check(t, f.raw.Exec(`CREATE CONSTRAINT TRIGGER fail_insert AFTER INSERT ON windrow.datasets
		DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail()`).Error)
	f.failCommits(2)
	equal(t, "rows", len(f.add(50)), 50)
	equal(t, "conflicts", seen.of("load: serialization"), 2)
	load, err := f.LatestLoad(t.Context(), "test")
	check(t, err)
	equal(t, "inserted", load.Inserted, 50)
}

func TestEndlessConflictsCountAsAnOutage(t *testing.T) {
	err := checkout.Explain("check in", &txn.ExhaustedError{Tries: 30, Last: &pgconn.PgError{Code: "40001"}})
	if !errors.Is(err, model.ErrUnavailable) || txn.ReasonOf(err) != txn.ReasonSerialization {
		t.Fatalf("got %v, want ErrUnavailable and the last cause", err)
	}
}
