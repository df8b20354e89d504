package handler

import (
	"fmt"
	"time"

	"go.uber.org/zap"
)

// StreamOptions says what a [Stream] runs. Exactly one of Args and Shell is
// given.
type StreamOptions struct {
	// Args are the program and its arguments, run without a shell and as they
	// are: a child lives for many rows, so no field can be put in.
	Args []string
	// Shell is a line for sh -c.
	Shell string
	// Shared makes one child serve all rows, in any order, instead of one child
	// for each row that is worked at the same time.
	Shared bool
	// Timeout is the most time that a child may take over one row; zero means
	// no limit. The row is tried again. In a shared child it includes the time
	// that the row waits there behind others.
	Timeout time.Duration
	// MaxOutput is how many bytes an answer may have; a larger one fails its row
	// for good. A child takes up to about three times as much memory here while
	// such an answer is read. Zero means [DefaultMaxOutput].
	MaxOutput int64
	// Env are variables, as NAME=VALUE, that the child gets besides those that
	// it inherits. This is the way to hand it a PG or WINDROW_ variable.
	Env []string
	// Logger gets the lines that are no answers, at most ten in a second, and
	// the deaths of children that no row's error tells of. Nil means none.
	Logger *zap.Logger
}

func (o StreamOptions) withDefaults() StreamOptions {
	if o.MaxOutput == 0 {
		o.MaxOutput = DefaultMaxOutput
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o
}

func (o StreamOptions) validate() error {
	switch {
	case o.Timeout < 0:
		return fmt.Errorf("stream timeout: %s is negative", o.Timeout)
	case o.MaxOutput < 0:
		return fmt.Errorf("stream output limit: %d is negative", o.MaxOutput)
	}
	return o.commandLine().validate()
}

func (o StreamOptions) commandLine() commandLine {
	return commandLine{kind: "stream", args: o.Args, shell: o.Shell}
}

// fingerprint is over what is run: how many rows share a child makes no other
// result.
func (o StreamOptions) fingerprint(program string) string {
	f := newFingerprint("stream")
	o.commandLine().addTo(f, program)
	return f.String()
}
