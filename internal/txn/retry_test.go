package txn_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/windrow-go/windrow/internal/txn"
)

var errConflict = &pgconn.PgError{Code: "40001"}

func TestRetryRepeatsALostRaceUntilItIsWon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := conflicts{}
		tries := 0
		check(t, txn.Retry(t.Context(), seen.policy(), func() error {
			if tries++; tries < 4 {
				return errConflict
			}
			return nil
		}))
		equal(t, "tries", tries, 4)
		equal(t, "conflicts counted", seen[txn.ReasonSerialization], 3)
	})
}

func TestRetryReturnsOtherErrorsAtOnce(t *testing.T) {
	seen := conflicts{}
	tries := 0
	broken := errors.New("broken")
	err := txn.Retry(t.Context(), seen.policy(), func() error {
		tries++
		return broken
	})
	equal(t, "error", err, broken) // as it was, so that its caller can look into it
	equal(t, "tries", tries, 1)
	equal(t, "conflicts counted", len(seen), 0)
}

func TestRetryGivesUpWithTheLastCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := conflicts{}
		policy := seen.policy()
		policy.Tries = 3
		tries := 0
		err := txn.Retry(t.Context(), policy, func() error {
			if tries++; tries < 3 {
				return errConflict
			}
			return &pgconn.PgError{Code: "55P03", Message: "the last one"}
		})
		var exhausted *txn.ExhaustedError
		if !errors.As(err, &exhausted) {
			t.Fatalf("got %v, want an ExhaustedError", err)
		}
		equal(t, "tries", tries, 3)
		equal(t, "tries said", exhausted.Tries, 3)
		equal(t, "reason of the cause", txn.ReasonOf(err), txn.ReasonLockTimeout)
		equal(t, "conflicts counted", seen[txn.ReasonSerialization], 2)
	})
}

func TestRetryOnceMeansOneTry(t *testing.T) {
	tries := 0
	err := txn.Retry(t.Context(), txn.Policy{Tries: 1}, func() error { tries++; return errConflict })
	var exhausted *txn.ExhaustedError
	equal(t, "exhausted", errors.As(err, &exhausted), true)
	equal(t, "tries", tries, 1)
}

func TestRetryEndsWithItsContextAndTellsBothErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		err := txn.Retry(ctx, txn.Policy{Tries: 1000}, func() error { return errConflict })
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errConflict) {
			t.Fatalf("got %v, want the context's error and the last try's", err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Fatalf("took %v", took)
		}
	})
}

func TestRetryTellsTheContextsErrorOnceWhenTheTryDiedOfIt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := txn.Retry(ctx, txn.Policy{}, func() error {
		cancel()
		return ctx.Err()
	})
	equal(t, "error", err.Error(), context.Canceled.Error())
}

// The delays are checked on a clock that stands still while the code runs.
func TestRetryWaitsLongerEachTime(t *testing.T) {
	tests := map[string]struct {
		policy txn.Policy
		want   []time.Duration // means; each may vary by half
	}{
		"by default":  {txn.Policy{Tries: 5}, []time.Duration{10 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond, 80 * time.Millisecond}},
		"at once":     {txn.Policy{Tries: 4, AtOnce: true}, []time.Duration{0, 10 * time.Millisecond, 20 * time.Millisecond}},
		"with a cap":  {txn.Policy{Tries: 5, First: time.Second, Longest: 2 * time.Second}, []time.Duration{time.Second, 2 * time.Second, 2 * time.Second, 2 * time.Second}},
		"of a second": {txn.Policy{Tries: 3, First: time.Second}, []time.Duration{time.Second, time.Second}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var at []time.Time
				_ = txn.Retry(t.Context(), tt.policy, func() error {
					at = append(at, time.Now())
					return errConflict
				})
				equal(t, "tries", len(at), len(tt.want)+1)
				for i, mean := range tt.want {
					if got := at[i+1].Sub(at[i]); got < mean/2 || got > mean+mean/2 {
						t.Errorf("delay %d is %v, want %v, more or less by half", i+1, got, mean)
					}
				}
			})
		})
	}
}

func TestRetryJitters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := map[time.Duration]bool{}
		for range 20 {
			began := time.Now()
			_ = txn.Retry(t.Context(), txn.Policy{Tries: 2}, func() error { return errConflict })
			seen[time.Since(began)] = true
		}
		if len(seen) < 5 {
			t.Fatalf("only %d different delays in 20", len(seen))
		}
	})
}
