package job

import (
	"context"
	"fmt"
	"time"

	"github.com/windrow-go/windrow/checkout"
)

const (
	// awaitEvery is the least time between two looks at a run's rows.
	awaitEvery = time.Second
	// awaitShare is how much longer than a look took it is waited for the next.
	awaitShare = 20
)

// runWatcher is a store as AwaitRun sees it.
type runWatcher interface {
	RunLeft(ctx context.Context, run int64) (left int64, state checkout.RunState, err error)
}

// AwaitRun returns when all rows of a run have been worked, by whomever. progress is
// told how many of how many are left. That the run was cancelled is an error.
func AwaitRun(ctx context.Context, s runWatcher, run int64, progress func(left, of int64)) error {
	most := int64(0)
	for {
		began := time.Now()
		left, state, err := s.RunLeft(ctx, run)
		switch {
		case err != nil:
			return err
		case state == checkout.RunCancelled:
			return fmt.Errorf("run %d: %w", run, checkout.ErrRunOver)
		case left == 0 && state == checkout.RunDone:
			progress(0, most)
			return nil
		}
		most = max(most, left)
		progress(left, most)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(max(awaitEvery, awaitShare*time.Since(began))):
		}
	}
}
