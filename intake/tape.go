package intake

import (
	"bytes"
	"errors"
	"io"

	"github.com/windrow-go/windrow/internal/jsonb"
)

// tapeChunk is how many bytes are read at once.
const tapeChunk = 64 << 10

var errRecordTooLong = errors.New("record too long")

// tape keeps what a parser has read since the record that it is in began, so that
// a bad record can be shown as it stands in the file, and ends the reading where
// a record grows too long.
type tape struct {
	r    io.Reader
	buf  []byte // bytes of the file from offset base on
	base int64
	mark int64 // offset where the record begins
	line int   // line where the record begins
	seen int64 // bytes read in all
	end  bool  // the reader has come to its end
}

func (t *tape) Read(p []byte) (int, error) {
	if t.seen-t.mark > jsonb.MaxBytes+tapeChunk {
		return 0, errRecordTooLong
	}
	if t.mark > t.base {
		kept := copy(t.buf, t.buf[t.mark-t.base:])
		t.buf, t.base = t.buf[:kept], t.mark
	}
	n, err := t.r.Read(p)
	t.buf = append(t.buf, p[:n]...)
	t.seen += int64(n)
	t.end = t.end || errors.Is(err, io.EOF)
	return n, err
}

// forget marks that a record begins at the offset: what stands before it is not
// needed any more.
func (t *tape) forget(offset int64) {
	if t.line == 0 {
		t.line = 1
	}
	t.line += bytes.Count(t.record(offset), []byte("\n"))
	t.mark = offset
}

// record returns the bytes from where the record began to the offset.
func (t *tape) record(offset int64) []byte {
	return t.buf[t.mark-t.base : offset-t.base]
}
