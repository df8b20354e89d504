package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// fleet is a number of worker processes.
type fleet struct {
	workers []*process
}

// process is one worker, as its parent sees it.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	errs   bytes.Buffer
	done   atomic.Int64
	killed atomic.Bool
	ended  chan struct{}

	report *report
	usage  *syscall.Rusage
}

// startFleet starts a worker for each task and returns when all are connected.
func startFleet(ctx context.Context, tasks []task) (*fleet, error) {
	f := &fleet{}
	for _, t := range tasks {
		p, err := startWorker(ctx, t)
		if err != nil {
			return nil, errors.Join(err, f.kill())
		}
		f.workers = append(f.workers, p)
	}
	for _, p := range f.workers {
		m, err := p.next()
		if err == nil && !m.Ready {
			err = errors.New("it is not ready")
		}
		if err != nil {
			return nil, errors.Join(p.trouble(err), f.kill())
		}
	}
	return f, nil
}

func startWorker(ctx context.Context, t task) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, program), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), workerVariable+"=1")
	p.cmd.Stderr = &p.errs
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReaderSize(out, 1<<20)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	return p, json.NewEncoder(p.in).Encode(t)
}

// run lets all workers begin and waits for their reports; meanwhile is called at
// the same time, and may kill some.
func (f *fleet) run(ctx context.Context, meanwhile func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range f.workers {
		group.Go(func() error { return p.watch() })
	}
	for _, p := range f.workers {
		if _, err := io.WriteString(p.in, "go\n"); err != nil {
			return errors.Join(p.trouble(err), f.kill())
		}
	}
	var side error
	over, stop := context.WithCancel(ctx)
	var sideways sync.WaitGroup
	if meanwhile != nil {
		sideways.Go(func() { side = meanwhile(over) })
	}
	err := group.Wait()
	stop()
	sideways.Wait()
	if err != nil {
		return errors.Join(err, f.kill())
	}
	return side
}

// watch reads what a worker says until its end.
func (p *process) watch() error {
	defer close(p.ended)
	for p.report == nil {
		m, err := p.next()
		if err != nil {
			_ = p.cmd.Wait()
			if p.killed.Load() {
				return nil
			}
			return p.trouble(err)
		}
		if m.Done > 0 {
			p.done.Store(m.Done)
		}
		p.report = m.Report
	}
	p.done.Store(p.report.Done)
	if err := p.cmd.Wait(); err != nil && !p.killed.Load() { // it may be killed at its very end
		return p.trouble(err)
	}
	p.usage, _ = p.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return nil
}

func (p *process) next() (message, error) {
	var m message
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(line, &m)
}

func (p *process) trouble(err error) error {
	return fmt.Errorf("worker %d: %w\n%s", p.cmd.Process.Pid, err, bytes.TrimSpace(p.errs.Bytes()))
}

// killWorker kills one worker without warning and waits until it is gone.
func (p *process) killWorker() {
	p.killed.Store(true)
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// kill ends what is left of the fleet.
func (f *fleet) kill() error {
	for _, p := range f.workers {
		p.killed.Store(true)
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait() // a second Wait does no harm
	}
	return nil
}

// finished is how many rows the fleet has finished, half a second ago at most.
func (f *fleet) finished() int64 {
	var n int64
	for _, p := range f.workers {
		n += p.done.Load()
	}
	return n
}

// usage is the fleet's processor time, and the largest process's peak of memory in
// bytes. Killed workers don't count.
func (f *fleet) usage() (cpu time.Duration, memory int64) {
	for _, p := range f.workers {
		if p.usage == nil {
			continue
		}
		cpu += time.Duration(p.usage.Utime.Nano() + p.usage.Stime.Nano())
		memory = max(memory, p.report.Memory)
	}
	return cpu, memory
}
