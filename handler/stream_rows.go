package handler

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/windrow-go/windrow/internal/processgroup"
	"github.com/windrow-go/windrow/model"
)

// keptRequest is how large the buffer for requests may stay.
const keptRequest = 1 << 20

// inFlight is a row that a child has been given.
type inFlight struct {
	reply  chan reply // takes exactly one, without waiting, unless the row is abandoned
	offset int64      // where its request begins in all that the child is sent
	sent   time.Time
}

// reply is what becomes of a row.
type reply struct {
	result   any
	err      error
	answered bool // by the child itself
	again    bool // the child has not seen the row: another may try
}

// ask gives the child a row and waits for what becomes of it.
func (c *child) ask(ctx context.Context, row model.Dataset) reply {
	ctx, stopTimer := withDeadline(ctx, c.stream.options.Timeout)
	defer stopTimer()
	w, err := c.send(row)
	switch {
	case err != nil:
		return reply{err: err}
	case w == nil:
		select {
		case <-c.finished:
			return reply{again: true}
		case <-ctx.Done():
			return reply{err: waitedInVain(ctx)}
		}
	}
	select {
	case r := <-w.reply:
		return r
	case <-ctx.Done():
		return c.giveUp(ctx, row.ID, w)
	}
}

// send sends the row's request; w is nil if the child is about to end.
func (c *child) send(row model.Dataset) (w *inFlight, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return nil, nil
	}
	if _, ok := c.rows[row.ID]; ok {
		return nil, model.Unavailable(fmt.Errorf("row %d is being worked by the shared child already", row.ID))
	}
	request, err := appendRequest(c.request[:0], row)
	if cap(request) <= keptRequest {
		c.request = request
	}
	if err != nil {
		return nil, err
	}
	if !c.stream.options.Shared && c.answers > 0 {
		c.stderr.reset() // what it holds is about earlier rows
	}
	w = &inFlight{reply: make(chan reply, 1), offset: c.sent, sent: time.Now()}
	c.rows[row.ID] = w
	c.write(request)
	return w, nil
}

// write writes as much as the pipe takes, and leaves the rest to a goroutine, so
// that nobody waits for a child that waits itself until its output is read. The
// child is locked.
func (c *child) write(request []byte) {
	c.sent += int64(len(request))
	if c.deaf {
		return
	}
	if !c.writing {
		n := c.writeNow(request)
		c.handed += int64(n)
		c.written += int64(n)
		request = request[n:]
	}
	if len(request) == 0 || c.deaf {
		return
	}
	c.backlog = append(c.backlog, request...)
	if !c.writing {
		c.writing = true
		c.writers.Go(c.flush)
	}
}

// writeNow writes without waiting.
func (c *child) writeNow(request []byte) (written int) {
	var err error
	closed := c.input.Write(func(fd uintptr) bool {
		for {
			written, err = syscall.Write(int(fd), request)
			if err != syscall.EINTR {
				return true
			}
		}
	})
	if closed != nil || err != nil && err != syscall.EAGAIN {
		c.hearsNothing()
	}
	return max(written, 0)
}

// pieceBytes is how much of a backlog is written at once: about what a pipe holds.
// If all of it were, a request behind another that nobody reads would count as
// handed over.
const pieceBytes = 64 << 10

// flush writes the backlog until there is none.
func (c *child) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.backlog) > 0 && !c.deaf {
		data := c.backlog[:min(len(c.backlog), pieceBytes)]
		c.backlog = c.backlog[len(data):]
		c.handed += int64(len(data))
		c.mu.Unlock()
		n, err := c.stdin.Write(data)
		c.mu.Lock()
		c.written += int64(n)
		if err != nil {
			c.hearsNothing()
		}
	}
	c.backlog, c.writing = nil, false
}

// hearsNothing tells that the child's standard input is closed: it is dead, or
// will answer for a short while at most. The child is locked.
func (c *child) hearsNothing() {
	c.deaf = true
	c.drain()
}

// answered takes a row out that the child has answered; nil if it has no such row.
// It can't have answered what it has not been handed.
func (c *child) answered(id int64) *inFlight {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.rows[id]
	if w == nil || w.offset >= c.handed {
		return nil
	}
	delete(c.rows, id)
	if c.answers == 0 {
		c.stream.pace.answered()
	}
	c.answers++
	c.answeredAt = time.Now()
	return w
}

// giveUp ends the wait for a row whose context has ended.
func (c *child) giveUp(ctx context.Context, id int64, w *inFlight) reply {
	cause := context.Cause(ctx)
	timedOut := ctx.Err() == context.DeadlineExceeded
	waiting, abandoned := c.abandon(id, w, timedOut)
	switch {
	case abandoned && timedOut:
		return reply{err: withTail(cause, &c.stderr)}
	case abandoned:
		return reply{err: cause}
	case waiting && !timedOut:
		c.acquitAll()
	}
	if waiting {
		c.stop(cause, timedOut)
	}
	r := <-w.reply
	if r.answered {
		return r // at the last moment
	}
	<-c.finished
	if !timedOut {
		return reply{err: cause}
	}
	return reply{err: r.err}
}

// abandon leaves a row that is still waiting to a child that is to live on. A
// shared child is, unless the row's time was up and the child is silent: it has
// answered nothing in the second half of that time. (That leaves room for answers
// that were under way when it got stuck.)
func (c *child) abandon(id int64, w *inFlight, timedOut bool) (waiting, abandoned bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	silent := timedOut && time.Since(c.answeredAt) >= time.Since(w.sent)/2
	waiting = c.rows[id] == w
	if !waiting || silent || !c.stream.options.Shared {
		return waiting, false
	}
	delete(c.rows, id)
	c.abandoned = true
	return true, true
}

// settle tells every row that the child has not answered what becomes of it, now
// that the process is gone.
func (c *child) settle(reason error) {
	rows, read := c.takeRows()
	var begun []int64
	for id, w := range rows {
		if w.offset < read {
			begun = append(begun, id)
		}
	}
	c.mu.Lock()
	answers, blameless := c.answers, c.blameless
	alone := len(begun) == 1 && !c.abandoned
	early := answers == 0 && (!c.timedOut || len(begun) == 0)
	c.mu.Unlock()

	if !blameless && early {
		c.stream.pace.died(c.generation, reason)
	}
	if !blameless && !alone {
		c.stream.log.death(reason, answers)
		c.stream.suspect(begun)
	}
	for _, w := range rows {
		switch {
		case w.offset >= read:
			unread := fmt.Errorf("%w (before it read the row)", reason)
			w.reply <- reply{err: model.Unavailable(unread), again: answers > 0}
		case blameless:
			w.reply <- reply{err: model.Unavailable(reason)}
		case alone:
			w.reply <- reply{err: charge(reason)}
		default:
			company := fmt.Errorf("%w, at work on several rows: this one is worked alone next time", reason)
			w.reply <- reply{err: model.Unavailable(company)}
		}
	}
}

// takeRows returns the rows that are left, and how much the child has read of all
// that it was sent. A process that did not start has read nothing.
func (c *child) takeRows() (rows map[int64]*inFlight, read int64) {
	unread := unreadBytes(c.stdin)
	c.stdin.Close()
	c.writers.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	rows, c.rows = c.rows, nil
	var start *processgroup.StartError
	if errors.As(c.exit, &start) {
		return rows, 0
	}
	return rows, c.written - unread
}

// charge makes the end of a child the error of the one row that it was at.
func charge(reason error) error {
	var large largeError
	if errors.As(reason, &large) {
		return model.Permanent(reason)
	}
	return reason
}
