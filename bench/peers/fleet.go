package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// fleet is a peer's worker processes, as their parent sees them.
type fleet []*process

type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startFleet starts workers and returns when all are connected. The caller owes it
// a stop or a kill.
func startFleet(ctx context.Context, t task, processes int, stderr io.Writer) (fleet, error) {
	var f fleet
	for range processes {
		p, err := startProcess(ctx, t, stderr)
		if err != nil {
			f.kill()
			return nil, err
		}
		f = append(f, p)
	}
	for _, p := range f {
		if err := readLine(p.out, &struct{}{}); err != nil {
			f.kill()
			return nil, fmt.Errorf("a worker is not ready: %w", err)
		}
	}
	return f, nil
}

func startProcess(ctx context.Context, t task, stderr io.Writer) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, program)}
	p.cmd.Env = append(os.Environ(), workerVariable+"=1")
	p.cmd.Stderr = stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if err := json.NewEncoder(p.in).Encode(t); err != nil {
		fleet{p}.kill()
		return nil, err
	}
	return p, nil
}

// begin lets all workers work.
func (f fleet) begin() error {
	for _, p := range f {
		if err := json.NewEncoder(p.in).Encode(struct{}{}); err != nil {
			return fmt.Errorf("a worker has gone: %w", err)
		}
	}
	return nil
}

// stop ends all workers in order and returns their reports.
func (f fleet) stop() ([]report, error) {
	var errs []error
	for _, p := range f {
		errs = append(errs, p.in.Close())
	}
	reports := make([]report, len(f))
	for i, p := range f {
		if err := readLine(p.out, &reports[i]); err != nil {
			errs = append(errs, fmt.Errorf("no report from worker %d, which has said why: %w", i, err))
		}
		errs = append(errs, p.cmd.Wait())
	}
	if err := errors.Join(errs...); err != nil {
		f.kill()
		return nil, fmt.Errorf("stop the workers: %w", err)
	}
	return reports, nil
}

// kill ends what is left of the fleet; no harm if that is nothing.
func (f fleet) kill() {
	for _, p := range f {
		_ = p.cmd.Process.Kill() // "process already finished"
		_ = p.cmd.Wait()         // "signal: killed", or it was waited for
	}
}
