package intake

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"github.com/windrow-go/windrow/internal/jsonb"
)

// valueReader cuts a text into JSON values by their brackets and quotes alone.
// Whether they are JSON is for others to check.
type valueReader struct {
	br     *bufio.Reader
	line   int64 // where the reader stands
	start  int64 // where the value last returned starts
	values int64 // how many were returned
	buf    []byte

	depth   int
	quoted  bool
	escaped bool
	bare    bool // a number or a word, which ends where something else begins
}

// next returns the next value; it is valid until the next call. What can't begin
// a value comes out as an empty one. A value that is bigger than one may be is a
// *BadRecord, and not kept in memory.
func (v *valueReader) next() ([]byte, error) {
	b, err := v.peek()
	if err != nil {
		return nil, err
	}
	v.reset(b)
	size := 0
	for {
		n, done := v.extent()
		chunk, _ := v.br.Peek(n)
		if size += n; size <= jsonb.MaxBytes {
			v.buf = append(v.buf, chunk...)
		}
		if err := v.skip(n); err != nil {
			return nil, err
		}
		if done {
			break
		}
		if _, err := v.br.Peek(1); err == io.EOF && v.bare {
			break
		} else if err == io.EOF {
			return nil, io.ErrUnexpectedEOF
		} else if err != nil {
			return nil, err
		}
	}
	if size > jsonb.MaxBytes {
		bad := &BadRecord{Line: v.start, Raw: sample(v.buf),
			Reason: fmt.Sprintf("the value has %d bytes, the most for one record is %d", size, jsonb.MaxBytes)}
		v.buf = nil
		return nil, bad
	}
	return v.buf, nil
}

func (v *valueReader) reset(first byte) {
	const keep = 1 << 20
	if cap(v.buf) > keep {
		v.buf = nil
	}
	v.buf = v.buf[:0]
	v.start = v.line
	v.values++
	v.depth, v.quoted, v.escaped = 0, false, false
	v.bare = first != '{' && first != '[' && first != '"'
}

// extent returns how many of the buffered bytes belong to the value, and whether
// it ends there.
func (v *valueReader) extent() (n int, done bool) {
	chunk, _ := v.br.Peek(v.br.Buffered())
	if v.bare {
		n = bytes.IndexAny(chunk, " \t\r\n,]}[{\":")
		if n < 0 {
			return len(chunk), false
		}
		return n, true
	}
	for i, b := range chunk {
		switch {
		case v.escaped:
			v.escaped = false
			continue
		case v.quoted && b == '\\':
			v.escaped = true
			continue
		case b == '"':
			v.quoted = !v.quoted
		case v.quoted:
			continue
		case b == '{' || b == '[':
			v.depth++
		case b == '}' || b == ']':
			v.depth--
		default:
			continue
		}
		if v.depth == 0 && !v.quoted {
			return i + 1, true
		}
	}
	return len(chunk), false
}

// peek steps over white space and returns what comes then, without taking it.
func (v *valueReader) peek() (byte, error) {
	for {
		if _, err := v.br.Peek(1); err != nil {
			return 0, err
		}
		chunk, _ := v.br.Peek(v.br.Buffered())
		rest := bytes.TrimLeft(chunk, " \t\r\n")
		if err := v.skip(len(chunk) - len(rest)); err != nil {
			return 0, err
		}
		if len(rest) > 0 {
			return rest[0], nil
		}
	}
}

// skip steps over n buffered bytes, counting lines.
func (v *valueReader) skip(n int) error {
	chunk, _ := v.br.Peek(n)
	v.line += int64(bytes.Count(chunk, []byte("\n")))
	_, err := v.br.Discard(n)
	return err
}
