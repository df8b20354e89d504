package handler

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// lineBuffer is how long a line may be to be read without a buffer of its own.
const lineBuffer = 64 << 10

// errLineTooLong: what came with it is only the beginning of the line.
var errLineTooLong = errors.New("the line is too long")

// lineReader reads the lines of a child.
type lineReader struct {
	source *bufio.Reader
	limit  int64 // of an answer, in bytes
}

func newLineReader(source io.Reader, limit int64) *lineReader {
	return &lineReader{source: bufio.NewReaderSize(source, lineBuffer), limit: limit}
}

// next returns the next line, with its newline unless err is not nil: then line
// is what there was before the error. It is the caller's to keep if own is true,
// and else good until the next call. Of a long line that can't be an answer only
// the beginning is kept.
func (r *lineReader) next() (line []byte, own bool, err error) {
	line, err = r.source.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		return r.long(line)
	}
	if int64(len(line)) > r.limit && maybeAnswer(line) {
		err = errLineTooLong
	}
	return line, false, err
}

// long reads the rest of a line that begins with head.
func (r *lineReader) long(head []byte) (line []byte, own bool, err error) {
	answer := maybeAnswer(head)
	if answer {
		line = make([]byte, 0, 4*len(head))
	}
	line = append(line, head...)
	for err = bufio.ErrBufferFull; err == bufio.ErrBufferFull; {
		if answer && int64(len(line)) > r.limit {
			return line[:lineBuffer], true, errLineTooLong
		}
		var part []byte
		part, err = r.source.ReadSlice('\n')
		if answer {
			line = append(line, part...)
		}
	}
	if answer && int64(len(line)) > r.limit {
		return line[:lineBuffer], true, errLineTooLong
	}
	return line, true, err
}

// maybeAnswer tells whether a line can be an answer, by its beginning.
func maybeAnswer(line []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("{"))
}
