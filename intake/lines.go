package intake

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/windrow-go/windrow/internal/jsonb"
)

// linesDecoder gives each line as a string. An empty line is an empty string.
type linesDecoder struct {
	in    *input
	lines lineReader
}

func (d *linesDecoder) next(dst []byte) ([]byte, int64, error) {
	line, err := d.lines.next()
	if err != nil {
		return nil, 0, err
	}
	switch {
	case !utf8.Valid(line):
		return nil, 0, d.lines.bad(line, adviceLatin1)
	case bytes.IndexByte(line, 0) >= 0:
		return nil, 0, d.lines.bad(line, "it holds a NUL character: PostgreSQL's jsonb can't (to end lines by NUL is not supported)")
	}
	dst = appendQuoted(dst, line)
	if err := jsonb.Check(dst); err != nil {
		return nil, 0, d.lines.bad(line, err.Error())
	}
	return dst, d.lines.number, nil
}

func (d *linesDecoder) close() error { return d.in.close() }

// lineReader cuts a text into lines.
type lineReader struct {
	br     *bufio.Reader
	number int64 // of the line last returned
	buf    []byte
}

// next returns the next line without its end, LF or CRLF; it is valid until the
// next call. A last line needs no end. A line longer than one value may be is a
// *BadRecord, and not kept in memory.
func (l *lineReader) next() ([]byte, error) {
	chunk, err := l.br.ReadSlice('\n')
	switch {
	case err == nil:
	case errors.Is(err, bufio.ErrBufferFull):
		chunk, err = l.long(chunk)
		if err != nil {
			return nil, err
		}
		return trimEnd(chunk), nil
	case err == io.EOF && len(chunk) > 0:
	default:
		return nil, err
	}
	l.number++
	return trimEnd(chunk), nil
}

// long gathers a line of which the first chunk filled the buffer.
func (l *lineReader) long(chunk []byte) ([]byte, error) {
	const keep = 1 << 20
	if cap(l.buf) > keep {
		l.buf = nil
	}
	l.buf = append(l.buf[:0], chunk...)
	size := len(chunk)
	for {
		chunk, err := l.br.ReadSlice('\n')
		if size += len(chunk); size <= jsonb.MaxBytes {
			l.buf = append(l.buf, chunk...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && err != io.EOF {
			return nil, err
		}
		l.number++
		if size > jsonb.MaxBytes {
			return nil, l.tooLong(size)
		}
		return l.buf, nil
	}
}

func (l *lineReader) tooLong(size int) error {
	bad := l.bad(l.buf, fmt.Sprintf("the line has %d bytes, the most for one record is %d", size, jsonb.MaxBytes))
	l.buf = nil
	return bad
}

func (l *lineReader) bad(raw []byte, reason string) *BadRecord {
	return &BadRecord{Line: l.number, Reason: reason, Raw: sample(raw)}
}

func trimEnd(line []byte) []byte {
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r"))
}
