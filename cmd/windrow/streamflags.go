package main

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/windrow-go/windrow/handler"
)

// afterOwn is how much later than the handler's own timeout the worker's comes, for
// handlers that have more to say, and to do, at theirs.
const afterOwn = 2 * time.Second

// streamFlags are about children that live for many rows.
type streamFlags struct {
	command string
	shared  bool
}

func (s *streamFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&s.command, "stream", "", "work rows with children of this `command` line (sh -c), a line of JSON each way for each row")
	flags.BoolVar(&s.shared, "stream-shared", false, "one child for all rows, which may answer in any order")
}

func (s *streamFlags) build(a *app, timeout time.Duration) (*madeHandler, error) {
	made, err := handler.NewStream(handler.StreamOptions{Shell: s.command, Shared: s.shared, Timeout: timeout, Logger: a.log})
	if err != nil {
		return nil, usagef("--stream: %w", err)
	}
	return &madeHandler{fingerprinted: made, timeout: later(timeout)}, nil
}

func later(timeout time.Duration) time.Duration {
	if timeout <= 0 {
		return timeout
	}
	return timeout + afterOwn
}
