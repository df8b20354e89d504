package main

import (
	"errors"
	"fmt"
)

// The exit codes that scripts may rely on. Commands that were to end by
// themselves and were stopped by a signal exit with 130 or 143.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
	exitRows    = 3 // finished, but rows failed or were rejected
	exitLocked  = 5 // somebody else holds the lock
)

// exitError ends the program with a code of its own. With a nil err everything
// has been said already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usagef is an error in how the command was called.
func usagef(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// codeOf maps a command's error to the exit code.
func codeOf(err error) int {
	var exit *exitError
	var signal *signalError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &signal):
		return signal.exitCode()
	default:
		return exitFailure
	}
}
