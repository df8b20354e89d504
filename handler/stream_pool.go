package handler

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/windrow-go/windrow/model"
)

const (
	allTurns = math.MaxInt32
	// maxSuspects bounds the memory of rows to be worked alone: those that other
	// workers get instead are never forgotten one by one.
	maxSuspects = 4096
)

// tryAlone gives the row to a child of its own.
func (s *Stream) tryAlone(ctx context.Context, row model.Dataset) reply {
	c := s.takeIdle()
	if c == nil {
		generation, err := s.pace.await(ctx)
		if err == nil {
			c, err = s.start(generation)
		}
		if err != nil {
			return reply{err: err}
		}
	}
	defer s.give(c)
	return c.ask(ctx, row)
}

// takeIdle returns the idle child that was used last, or nil.
func (s *Stream) takeIdle() *child {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.idle) - 1
	if last < 0 {
		return nil
	}
	c := s.idle[last]
	s.idle = s.idle[:last]
	return c
}

// give takes a child back, unless it is about to end.
func (s *Stream) give(c *child) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.isClosing() {
		s.idle = append(s.idle, c)
	}
}

// dismiss keeps a child that is about to end from being taken.
func (s *Stream) dismiss(c *child) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = slices.DeleteFunc(s.idle, func(other *child) bool { return other == c })
}

// forget is the last that is done about a child.
func (s *Stream) forget(c *child) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.children, c)
	if s.shared == c {
		s.shared = nil
	}
}

// start makes a child.
func (s *Stream) start(generation int) (*child, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, model.Unavailable(errClosed)
	}
	if s.options.Shared && s.shared != nil {
		return s.shared, nil // somebody else was faster
	}
	c, err := startChild(s, generation)
	if err != nil {
		err = fmt.Errorf("start %s: %w", s.program, err)
		s.pace.died(generation, err)
		return nil, model.Unavailable(err)
	}
	s.children[c] = struct{}{}
	if s.options.Shared {
		s.shared = c
	}
	return c, nil
}

// tryShared gives the row to the child that serves all rows.
func (s *Stream) tryShared(ctx context.Context, row model.Dataset) reply {
	alone := s.isSuspect(row.ID)
	places := int64(1)
	if alone {
		places = allTurns
	}
	if s.turns.Acquire(ctx, places) != nil {
		return reply{err: waitedInVain(ctx)}
	}
	defer s.turns.Release(places)
	c, err := s.sharedChild(ctx, alone)
	if err != nil {
		return reply{err: err}
	}
	r := c.ask(ctx, row)
	if alone && r.answered {
		s.acquit(row.ID)
	}
	return r
}

// sharedChild returns the one child, if need be a new one as soon as the old is
// gone. For a row that is to be alone, it has no other unanswered row.
func (s *Stream) sharedChild(ctx context.Context, alone bool) (*child, error) {
	for {
		s.mu.Lock()
		c := s.shared
		s.mu.Unlock()
		if c == nil {
			generation, err := s.pace.await(ctx)
			if err == nil {
				c, err = s.start(generation)
			}
			if err != nil {
				return nil, err
			}
		}
		closing, abandoned := c.state()
		switch {
		case !closing && !(alone && abandoned):
			return c, nil
		case !closing:
			c.close()
			continue
		}
		select {
		case <-c.finished:
		case <-ctx.Done():
			return nil, waitedInVain(ctx)
		}
	}
}

// waitedInVain is the error of a row that no child was given. That its time was
// up is not its fault.
func waitedInVain(ctx context.Context) error {
	if ctx.Err() != context.DeadlineExceeded {
		return context.Cause(ctx)
	}
	return model.Unavailable(fmt.Errorf("waiting for a child: %w", context.Cause(ctx)))
}

func (s *Stream) isSuspect(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, suspect := s.suspects[id]
	return suspect
}

func (s *Stream) suspect(ids []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.suspects)+len(ids) > maxSuspects {
		clear(s.suspects)
	}
	for _, id := range ids {
		s.suspects[id] = struct{}{}
	}
}

func (s *Stream) acquit(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.suspects, id)
}
