package handler

import (
	"context"
	"fmt"
	"time"
)

// withDeadline ends the context after d, with a cause that says so; zero means
// never.
func withDeadline(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, d, timeoutError{after: d})
}

// timeoutError says that a row's time was up. It is an ordinary error: the next
// try may meet a less busy machine.
type timeoutError struct{ after time.Duration }

func (e timeoutError) Error() string { return fmt.Sprintf("timed out after %s", e.after) }
