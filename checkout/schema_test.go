package checkout_test

import (
	"strings"
	"testing"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
	"github.com/windrow-go/windrow/model"
)

// Names derived from a schema's, such as that of a channel, must not outgrow the
// server's limit.
func TestASchemaWithTheLongestNameWorks(t *testing.T) {
	f := postgresAt(t, pgtest.Database(t), checkout.Options{Schema: strings.Repeat("s", 63)})
	f.addKeyed("k0", "k1", "k2")
	for _, job := range []string{"work", "load", "look", "reprocess"} {
		if err := jobs[job](f); err != nil {
			t.Errorf("%s: %v", job, err)
		}
	}
}

func TestTwoJobsInOneDatabaseAreApart(t *testing.T) {
	url := pgtest.Database(t)
	one := postgresAt(t, url, checkout.Options{Schema: "one"})
	two := postgresAt(t, url, checkout.Options{Schema: "two"})
	one.addKeyed("a", "b")
	two.addKeyed("a")
	claims := one.checkOut(one.store, "w", 2)
	equal(t, "rows of the first", len(claims), 2)
	equal(t, "rows of the second", len(two.checkOut(two.store, "w", 2)), 1)
	one.checkIn(done(claims[0], `1`), done(claims[1], `1`))
	counts, err := two.Counts(t.Context())
	check(t, err)
	equal(t, "done in the second", counts[model.Done], 0)
	if one.row(1).IdempotencyKey() == two.row(1).IdempotencyKey() {
		t.Error("rows of two jobs have the same idempotency key")
	}
}
