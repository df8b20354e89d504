package handler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/windrow-go/windrow/internal/processgroup"
	"github.com/windrow-go/windrow/model"
)

var (
	errInputClosed  = errors.New("the child closed its standard input")
	errOutputClosed = errors.New("the child closed its standard output")
)

// child is one long-lived process and the rows that it has been given.
//
// Three goroutines serve it: one stays on its thread and waits for the process
// (see processgroup.Run), one reads answers and settles, at the end, what is unanswered,
// and os/exec's reads standard error. A fourth writes what doesn't go into the
// pipe at once.
type child struct {
	stream     *Stream
	generation int
	stdin      *os.File
	input      syscall.RawConn // stdin
	stdout     *os.File
	stderr     tail
	cancel     context.CancelFunc // ends the process group
	ended      chan struct{}      // closed when the process is gone; exit is why
	exit       error
	finished   chan struct{} // closed when every row is settled and nothing is left
	writers    sync.WaitGroup

	mu         sync.Mutex
	rows       map[int64]*inFlight
	answers    int64
	answeredAt time.Time // last
	abandoned  bool      // a row was given up, and may still be worked on
	closing    bool      // takes no more rows
	over       bool      // its output has come to an end
	why        error     // why it is being ended, if it does not end by itself
	timedOut   bool      // why is a timeout
	blameless  bool      // whatever ends it is no fault of the rows that it has
	deaf       bool      // it has closed its standard input
	draining   bool      // its output is read for a short while only
	request    []byte    // a buffer
	backlog    []byte    // not yet written
	writing    bool      // a goroutine writes the backlog
	sent       int64     // bytes of all requests
	handed     int64     // bytes that are in the pipe, or being written
	written    int64     // bytes that are in the pipe, or were
}

// startChild makes the pipes and starts the goroutines. The process is started by
// one of them, and an error of that is how the child ends.
func startChild(s *Stream, generation int) (*child, error) {
	stdin, toChild, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	fromChild, stdout, err := os.Pipe()
	if err != nil {
		stdin.Close()
		toChild.Close()
		return nil, err
	}
	input, err := toChild.SyscallConn()
	if err != nil {
		return nil, err // it can't be: it is open
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &child{
		stream:     s,
		generation: generation,
		stdin:      toChild,
		input:      input,
		stdout:     fromChild,
		cancel:     cancel,
		ended:      make(chan struct{}),
		finished:   make(chan struct{}),
		rows:       map[int64]*inFlight{},
	}
	cmd := &exec.Cmd{
		Path:   s.program,
		Args:   s.options.commandLine().argv(),
		Env:    s.environment,
		Stdin:  stdin,
		Stdout: stdout,
		Stderr: &c.stderr,
	}
	s.running.Go(func() { c.run(ctx, cmd, stdin, stdout) })
	s.running.Go(c.read)
	return c, nil
}

// run runs the process until its end. The files are the process's ends of the
// pipes, which it alone must hold, to make its death felt.
func (c *child) run(ctx context.Context, cmd *exec.Cmd, stdin, stdout *os.File) {
	closeEnds := sync.OnceFunc(func() {
		stdin.Close()
		stdout.Close()
	})
	defer c.cancel()
	_, c.exit = processgroup.Run(ctx, cmd, closeEnds)
	closeEnds()
	close(c.ended)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drain()
}

// drain bounds how long output is still waited for: a process that left the group
// may keep it open. The child is locked.
func (c *child) drain() {
	if !c.draining {
		c.draining = true
		c.stdout.SetReadDeadline(time.Now().Add(processgroup.DrainDelay)) // fails only if it is closed already
	}
}

// read reads the output until its end, and then sees to the child's end.
func (c *child) read() {
	lines := newLineReader(c.stdout, c.stream.options.MaxOutput)
	for {
		line, own, err := lines.next()
		switch {
		case err == errLineTooLong:
			c.refuse(line)
			c.finish(nil)
			return
		case (err == nil || json.Valid(line)) && c.take(line, own): // the last line may be cut short
			line = nil
		case err == nil:
			c.stream.log.line(line)
		}
		if err != nil {
			c.finish(bytes.TrimSpace(line))
			return
		}
	}
}

// take answers a row if the line is its answer.
func (c *child) take(line []byte, own bool) bool {
	a, ok := parseAnswer(line, asItIs)
	if !ok {
		return false
	}
	w := c.answered(a.id)
	if w == nil {
		return false
	}
	result, cost, err := a.decode()
	if !own {
		result = bytes.Clone(result)
	}
	r := replyOf(result, cost, err)
	w.reply <- reply{result: r.Result, err: r.Err, answered: true}
	return true
}

// asItIs shows a child's texts. They hold no secret that windrow knows of, and the
// processor makes them fit for the table.
func asItIs(text string) string { return text }

// refuse ends the child for an answer that is too large. Its row is not tried
// again, if the beginning tells which it is.
func (c *child) refuse(head []byte) {
	large := largeError{limit: c.stream.options.MaxOutput}
	c.stop(large, false)
	a, ok := parseAnswer(head, asItIs)
	if !ok {
		return
	}
	if w := c.answered(a.id); w != nil {
		c.acquitAll()
		w.reply <- reply{err: model.Permanent(large), answered: true}
	}
}

// stop ends the child. The first reason counts, and the end of its output is one.
func (c *child) stop(why error, timedOut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
	switch {
	case c.why != nil:
	case c.over && c.deaf:
		c.why = errInputClosed
	case c.over:
		c.why = errOutputClosed
	default:
		c.why, c.timedOut = why, timedOut
	}
	c.cancel()
}

// close lets the child end by itself, and ends it if it does not.
func (c *child) close() {
	c.mu.Lock()
	c.closing, c.blameless = true, true
	if c.why == nil {
		c.why = errClosed
	}
	c.mu.Unlock()
	c.stdin.Close()
	timer := time.NewTimer(processgroup.KillGrace)
	defer timer.Stop()
	select {
	case <-c.finished:
	case <-timer.C:
		c.cancel()
		<-c.finished
	}
}

// acquitAll makes the child's end no fault of the rows that it has.
func (c *child) acquitAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blameless = true
}

func (c *child) isClosing() bool {
	closing, _ := c.state()
	return closing
}

func (c *child) state() (closing, abandoned bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closing, c.abandoned
}

// finish is what is done when no more output comes. unfinished is a last line
// without a newline that was no answer.
func (c *child) finish(unfinished []byte) {
	c.mu.Lock()
	c.closing, c.over = true, true
	c.mu.Unlock()
	c.stream.dismiss(c)
	c.awaitEnd()
	reason := c.reason()
	if len(unfinished) > 0 {
		reason = fmt.Errorf("%w, in the middle of a line that begins %q", reason, beginning(unfinished))
	}
	c.settle(withTail(reason, &c.stderr))
	c.stdout.Close()
	c.stream.forget(c)
	close(c.finished)
}

// awaitEnd waits for the end of the process, which mostly comes with the end of
// its output, and brings it about if it does not come soon.
func (c *child) awaitEnd() {
	timer := time.NewTimer(processgroup.KillGrace)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
		c.stop(errOutputClosed, false)
		<-c.ended
	}
}

// reason tells why the child has ended.
func (c *child) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var start *processgroup.StartError
	var exit *exec.ExitError
	switch {
	case c.why != nil:
		return c.why
	case errors.As(c.exit, &start):
		return explainStart(c.stream.program, c.exit)
	case errors.As(c.exit, &exit):
		return fmt.Errorf("the child ended: %w", exitError(exit))
	case c.exit != nil:
		return fmt.Errorf("wait for the child: %w", c.exit)
	}
	return errors.New("the child ended: exit status 0")
}

// largeError says that an answer is above the limit.
type largeError struct{ limit int64 }

func (e largeError) Error() string {
	return fmt.Sprintf("the child's answer is larger than %d bytes", e.limit)
}
