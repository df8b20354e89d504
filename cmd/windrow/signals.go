package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// signalError is the cause of a context that a signal ended.
type signalError struct {
	signal syscall.Signal
}

func (e *signalError) Error() string {
	if e.signal == syscall.SIGINT {
		return "stopped by SIGINT"
	}
	return "stopped by SIGTERM"
}

// exitCode is the shell's convention: 130 for an interrupt, 143 for SIGTERM.
func (e *signalError) exitCode() int { return 128 + int(e.signal) }

// untilSignal ends the context at the first SIGINT or SIGTERM, which asks for an
// orderly stop; the second ends the process at once.
func untilSignal(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		first, open := <-signals
		if !open {
			return
		}
		cancel(&signalError{first.(syscall.Signal)})
		if second, open := <-signals; open {
			os.Exit((&signalError{second.(syscall.Signal)}).exitCode())
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel(nil)
	}
}

// stoppedBy returns the signal that ended ctx, if one did.
func stoppedBy(ctx context.Context) *signalError {
	var s *signalError
	errors.As(context.Cause(ctx), &s)
	return s
}

// stoppedEarly gives the exit code of a signal to what it cut off. An error that
// has an exit code of its own came before.
func stoppedEarly(ctx context.Context, err error) error {
	var exit *exitError
	if s := stoppedBy(ctx); s != nil && err != nil && !errors.As(err, &exit) {
		return s
	}
	return err
}
