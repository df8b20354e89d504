package intake

import (
	"bufio"

	"github.com/windrow-go/windrow/internal/jsonb"
)

// jsonlSink writes lines as JSON Lines.
type jsonlSink struct {
	w   *bufio.Writer
	buf []byte
}

func (s *jsonlSink) write(l *fieldList) error {
	s.buf = s.buf[:0]
	for i, f := range l.fields {
		s.buf = append(s.buf, "{,"[min(i, 1)])
		s.buf = append(appendQuoted(s.buf, f.name), ':')
		s.buf = jsonb.AppendCompact(s.buf, f.value)
	}
	s.buf = append(s.buf, "}\n"...)
	_, err := s.w.Write(s.buf)
	return err
}

func (s *jsonlSink) close() error { return s.w.Flush() }
