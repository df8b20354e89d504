package main

import (
	"context"
	"io"
	"os"
	"sync"
)

// untilDone makes reading from stdin end with ctx. A read from a pipe that nobody
// writes to can't be broken off: it is left behind, and the program ends over it.
func untilDone(ctx context.Context, stdin io.Reader) io.Reader {
	if f, ok := stdin.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			return f // is never waited for, and has a size for the progress
		}
	}
	return &stoppable{ctx: ctx, stdin: stdin, read: make(chan piece), ready: make(chan []byte)}
}

// stoppable reads in a goroutine of its own, into a buffer of its own: the caller's
// may be used again while a read that was left behind still fills it.
type stoppable struct {
	ctx   context.Context
	stdin io.Reader
	begin sync.Once
	ready chan []byte // buffers to be filled
	read  chan piece
	buf   []byte
	rest  []byte // read, and not yet handed on
	err   error
}

// piece is what one read has brought.
type piece struct {
	n   int
	err error
}

func (s *stoppable) Read(p []byte) (int, error) {
	s.begin.Do(func() {
		s.buf = make([]byte, 64<<10)
		go s.fill()
	})
	for len(s.rest) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// next has the buffer filled, unless ctx ends before.
func (s *stoppable) next() error {
	select {
	case s.ready <- s.buf:
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
	select {
	case got := <-s.read:
		s.rest, s.err = s.buf[:got.n], got.err
		return nil
	case <-s.ctx.Done():
		s.err = context.Cause(s.ctx) // the buffer is no longer ours
		return s.err
	}
}

func (s *stoppable) fill() {
	for {
		select {
		case buf := <-s.ready:
			var got piece
			got.n, got.err = s.stdin.Read(buf)
			select {
			case s.read <- got:
			case <-s.ctx.Done():
				return
			}
		case <-s.ctx.Done():
			return
		}
	}
}
