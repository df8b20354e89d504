package schedule

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/windrow-go/windrow/internal/processgroup"
)

// runCommand runs a command to its end, or until ctx ends: then its process group gets
// SIGTERM and, after two seconds, SIGKILL, and cut is true. status is its exit status,
// if it has one.
func runCommand(ctx context.Context, command, environment []string, output io.Writer) (status *int, cut bool, err error) {
	program, err := exec.LookPath(command[0])
	if err != nil {
		return nil, false, fmt.Errorf("start %s: %w", command[0], err)
	}
	cmd := &exec.Cmd{Path: program, Args: command, Env: environment, Stdout: output, Stderr: output}
	cut, err = processgroup.Run(ctx, cmd, func() {})
	if cmd.ProcessState != nil && cmd.ProcessState.Exited() {
		code := cmd.ProcessState.ExitCode()
		status = &code
	}
	var start *processgroup.StartError
	var exit *exec.ExitError
	switch {
	case errors.As(err, &start):
		return nil, false, explainStart(command[0], err)
	case errors.As(err, &exit):
		err = exitError(exit)
	}
	return status, cut, err
}

func explainStart(program string, err error) error {
	if errors.Is(err, syscall.ENOEXEC) {
		return fmt.Errorf("start %s: %w: does the script begin with a line such as #!/bin/sh?", program, err)
	}
	return fmt.Errorf("start %s: %w", program, err)
}

// exitError tells of the signal, if it was one that ended the process.
func exitError(exit *exec.ExitError) error {
	status, ok := exit.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return fmt.Errorf("killed by %s (%s)", unix.SignalName(status.Signal()), status.Signal())
	}
	return exit
}

// environment is what a run's command gets: the variables of this process, but for
// windrow's own settings, which are meant for the scheduler; extra; and those that
// tell of the run.
func environment(extra []string, run Run) []string {
	var all []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "WINDROW_") {
			all = append(all, variable)
		}
	}
	return append(append(all, extra...),
		"WINDROW_RUN_ID="+strconv.FormatInt(run.ID, 10),
		"WINDROW_RUN_SCHEDULE="+run.Schedule,
		"WINDROW_RUN_DUE_AT="+run.DueAt.UTC().Format(time.RFC3339Nano),
		"WINDROW_RUN_ON_DEMAND="+strconv.FormatBool(run.OnDemand),
	)
}
