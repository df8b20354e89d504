package txn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Policy bounds the tries of [Retry]. The zero value is the default.
type Policy struct {
	// Tries is the largest number of tries, the first included. Default 30.
	Tries int
	// First is the mean delay before the second try; it doubles from try to
	// try, with a jitter of half of it. Default 10 ms.
	First time.Duration
	// AtOnce makes the second try follow without a delay, for a caller who
	// aims it elsewhere.
	AtOnce bool
	// Longest caps the mean delay. Default 1 s.
	Longest time.Duration
	// OnConflict, if set, is told the reason of every try that has to be
	// repeated.
	OnConflict func(Reason)
}

func (p Policy) withDefaults() Policy {
	if p.Tries == 0 {
		p.Tries = 30
	}
	if p.First == 0 {
		p.First = 10 * time.Millisecond
	}
	if p.Longest == 0 {
		p.Longest = time.Second
	}
	if p.OnConflict == nil {
		p.OnConflict = func(Reason) {}
	}
	return p
}

// ExhaustedError says that every try of [Retry] lost its race.
type ExhaustedError struct {
	Tries int
	Last  error // of the last try
}

func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("gave up after %d tries: %v", e.Tries, e.Last)
}

// Unwrap returns the error of the last try.
func (e *ExhaustedError) Unwrap() error { return e.Last }

// Retry calls op until it succeeds, fails for a reason other than a lost race,
// or the policy's tries are used up (*ExhaustedError). When ctx ends meanwhile,
// the error is ctx's joined with that of the last try.
func Retry(ctx context.Context, policy Policy, op func() error) error {
	policy = policy.withDefaults()
	tries := 0
	var last error
	try := func() error {
		tries++
		last = op()
		if last != nil && ReasonOf(last) == ReasonNone {
			return backoff.Permanent(last)
		}
		return last
	}
	notify := func(err error, _ time.Duration) { policy.OnConflict(ReasonOf(err)) }
	err := backoff.RetryNotify(try, policy.schedule(ctx), notify)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()) && !errors.Is(last, ctx.Err()):
		return errors.Join(err, last)
	case ReasonOf(last) != ReasonNone:
		return &ExhaustedError{Tries: tries, Last: last}
	default:
		return err
	}
}

// schedule is built anew for every call: a backoff's state can't be shared.
func (p Policy) schedule(ctx context.Context) backoff.BackOff {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(p.First),
		backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(0.5),
		backoff.WithMaxInterval(p.Longest),
		backoff.WithMaxElapsedTime(0),
	)
	var schedule backoff.BackOff = b
	if p.AtOnce {
		schedule = &atOnce{BackOff: b}
	}
	return backoff.WithContext(backoff.WithMaxRetries(schedule, uint64(p.Tries-1)), ctx)
}

// atOnce puts one delay of zero before those of another schedule.
type atOnce struct {
	backoff.BackOff
	used bool
}

func (a *atOnce) NextBackOff() time.Duration {
	if !a.used {
		a.used = true
		return 0
	}
	return a.BackOff.NextBackOff()
}

func (a *atOnce) Reset() {
	a.used = false
	a.BackOff.Reset()
}
