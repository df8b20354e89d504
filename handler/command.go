package handler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/windrow-go/windrow/internal/processgroup"
	"github.com/windrow-go/windrow/model"
)

// Exit statuses with a meaning, from sysexits.h. EX_TEMPFAIL (75) is an ordinary
// error like all the others.
const exitDataError = 65

// Command handles a row by a process of its own.
//
// Standard input is the row's data as JSON, on one line; a command need not read
// it. Standard output is the result: a JSON object or array as such, anything
// else as a string without its last newline, nothing as null. A string may hold
// bytes that are no UTF-8: they become U+FFFD where it is marshalled.
//
// An exit status other than 0, or a death by signal, is an error with the end of
// standard error (2 KiB). It is retried, except after status 65 (EX_DATAERR),
// which says that the row's data is wrong: that fails the row for good. A command
// that can't be started is model.Unavailable, unless it is for the row's data.
//
// The environment is windrow's own without WINDROW_* and PG* variables, which
// lead to its database, and with WINDROW_ROW_ID, WINDROW_ROW_KEY (empty if the
// row has none), WINDROW_ROW_ATTEMPT (1 for the first try) and
// WINDROW_ROW_IDEMPOTENCY_KEY (see [model.Dataset.IdempotencyKey]). With OutputDir
// there is WINDROW_ROW_OUTPUT, a path to write a file to (see [OutputFile]).
//
// The process leads a process group. When it ends, what is left of its group is
// killed. At the timeout or a cancel the whole group gets SIGTERM and, two
// seconds later, SIGKILL. On Linux the process is killed, too, when windrow dies
// itself. A process that leaves the group (setsid, daemons) is out of reach; if
// it keeps standard output open, that costs each row half a second.
type Command struct {
	options     CommandOptions
	program     string
	templates   []template
	environment environment
	fingerprint string
}

// NewCommand finds the program, takes in the environment and the scripts'
// contents, and checks the options. Nothing is run yet.
func NewCommand(options CommandOptions) (*Command, error) {
	options = options.withDefaults()
	if err := options.validate(); err != nil {
		return nil, err
	}
	templates, err := options.templates()
	if err != nil {
		return nil, err
	}
	program, err := options.commandLine().program()
	if err != nil {
		return nil, err
	}
	environment, err := newEnvironment(os.Environ(), options.Env)
	if err != nil {
		return nil, err
	}
	return &Command{
		options:     options,
		program:     program,
		templates:   templates,
		environment: environment,
		fingerprint: options.fingerprint(program),
	}, nil
}

// Fingerprint identifies the command line, whether JSON is demanded, and the
// contents of the scripts among its words: files that begin with #! or are named
// like a script, and a program that is given by its path. Data files, and
// programs found in PATH that are no scripts, count only by their names.
func (c *Command) Fingerprint() string { return c.fingerprint }

// Handle runs the command for one row and returns a json.RawMessage, a string
// or nil, or a model.Answer with one of these if the row has an output file.
func (c *Command) Handle(ctx context.Context, row model.Dataset) (any, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if c.options.OutputDir == "" {
		return c.run(ctx, row, c.environment.with(row))
	}
	file := NewOutputFile(c.options.OutputDir, row)
	made, err := c.run(ctx, row, append(c.environment.with(row), "WINDROW_ROW_OUTPUT="+file.Path()))
	if err == nil {
		made, err = file.Answer(made)
	}
	if err != nil {
		file.Remove()
		return nil, err
	}
	return made, nil
}

func (c *Command) run(ctx context.Context, row model.Dataset, environment []string) (any, error) {
	arguments, err := renderAll(c.templates, row.Data)
	if err != nil {
		return nil, err
	}
	ctx, stopTimer := withDeadline(ctx, c.options.Timeout)
	defer stopTimer()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	stdout := &output{limit: c.options.MaxOutput, cancel: cancel}
	stderr := &tail{}
	cut, err := processgroup.Run(ctx, &exec.Cmd{
		Path:   c.program,
		Args:   arguments,
		Env:    environment,
		Stdin:  bytes.NewReader(inputLine(row.Data)),
		Stdout: stdout,
		Stderr: stderr,
	}, func() {})
	switch {
	case stdout.err != nil:
		return nil, model.Permanent(stdout.err)
	case cut:
		return nil, cutError(context.Cause(ctx), stderr)
	case err != nil:
		return nil, runError(arguments[0], err, stderr)
	}
	return result(stdout.kept.Bytes(), c.options.JSON)
}

// inputLine is the data as one line; data that is no JSON stays as it is.
func inputLine(data json.RawMessage) []byte {
	line, err := appendOneLine(make([]byte, 0, len(data)+1), data)
	if err != nil {
		line = append(line, data...)
	}
	return append(line, '\n')
}

// appendOneLine appends the data without line breaks: within JSON they can only be
// white space. No data is null.
func appendOneLine(line []byte, data json.RawMessage) ([]byte, error) {
	if len(data) == 0 {
		return append(line, "null"...), nil
	}
	if bytes.IndexByte(data, '\n') < 0 && bytes.IndexByte(data, '\r') < 0 {
		return append(line, data...), nil
	}
	compact := bytes.NewBuffer(line)
	err := json.Compact(compact, data)
	return compact.Bytes(), err
}

// cutError is why a command was ended: for a timeout with the end of stderr.
func cutError(cause error, stderr *tail) error {
	var timeout timeoutError
	if errors.As(cause, &timeout) {
		return withTail(timeout, stderr)
	}
	return cause
}

// runError translates an error of starting or running the command.
func runError(name string, err error, stderr *tail) error {
	var start *processgroup.StartError
	switch {
	case errors.Is(err, syscall.E2BIG):
		return model.Permanent(fmt.Errorf("start %s: %w: let it read the row from standard input", name, err))
	case errors.As(err, &start):
		return explainStart(name, err)
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return fmt.Errorf("run %s: %w", name, err)
	}
	failure := withTail(exitError(exit), stderr)
	if exit.ExitCode() == exitDataError {
		return model.Permanent(failure)
	}
	return failure
}

// exitError tells of the signal, if it was one that ended the process.
func exitError(exit *exec.ExitError) error {
	status, ok := exit.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return fmt.Errorf("killed by %s (%s)", unix.SignalName(status.Signal()), status.Signal())
	}
	return exit
}

// explainStart adds what to do to an error that is hard to understand.
func explainStart(name string, err error) error {
	if errors.Is(err, syscall.ENOEXEC) {
		return model.Unavailable(fmt.Errorf("start %s: %w: does the script begin with a line such as #!/bin/sh?", name, err))
	}
	return model.Unavailable(fmt.Errorf("start %s: %w", name, err))
}

// withTail adds the end of stderr, if there is any, to err.
func withTail(err error, stderr *tail) error {
	text := stderr.String()
	if text == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, text)
}
