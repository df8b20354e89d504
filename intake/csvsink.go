package intake

import (
	"bufio"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"

	"github.com/windrow-go/windrow/internal/jsonb"
)

// maxColumns bounds the columns of a CSV file, and so what is kept of them.
const maxColumns = 10_000

// csvSink writes lines as CSV. The header needs the names of all columns, which
// are known at the end only: until then the lines are kept in a temporary file,
// cell by cell: the number of the column from 1, the length of the text, the
// text; a zero ends a line.
type csvSink struct {
	w       io.Writer
	spool   tempFile
	buf     *bufio.Writer
	scratch []byte
	columns columnSet
}

func newCSVSink(w io.Writer, spool tempFile, columns columnSet) *csvSink {
	return &csvSink{w: w, spool: spool, buf: bufio.NewWriterSize(spool, 64<<10), columns: columns}
}

func (s *csvSink) write(l *fieldList) error {
	b := s.scratch[:0]
	for _, f := range l.fields {
		column, err := s.columns.number(f.name)
		if err != nil {
			return err
		}
		text := cellText(f.value)
		b = binary.AppendUvarint(b, uint64(column)+1)
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	s.scratch = append(b, 0)
	_, err := s.buf.Write(s.scratch)
	return err
}

// cellText returns what stands in a cell for a JSON value.
func cellText(value []byte) []byte {
	switch i := skipSpace(value, 0); {
	case i == len(value) || value[i] == 'n':
		return nil
	case value[i] == '"':
		return unquote(value[i:valueEnd(value, i)])
	}
	return jsonb.AppendCompact(nil, value)
}

// close writes the file from what was kept.
func (s *csvSink) close() error {
	return errors.Join(s.copyOut(), s.spool.Close())
}

func (s *csvSink) copyOut() error {
	if err := s.buf.Flush(); err != nil {
		return err
	}
	if _, err := s.spool.Seek(0, io.SeekStart); err != nil {
		return err
	}
	out := csv.NewWriter(s.w)
	header, place := s.columns.layout()
	if err := out.Write(header); err != nil {
		return err
	}
	in := bufio.NewReaderSize(s.spool, 64<<10)
	record := make([]string, len(header))
	for {
		clear(record)
		err := readCells(in, record, place)
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("read temporary file: %w", err)
		}
		if err := out.Write(record); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// readCells reads one line that was kept; place tells where in the record a
// column stands. The error is io.EOF behind the last line.
func readCells(in *bufio.Reader, record []string, place []int) error {
	for first := true; ; first = false {
		column, err := binary.ReadUvarint(in)
		if err == io.EOF && !first {
			return io.ErrUnexpectedEOF
		}
		if err != nil || column == 0 {
			return err
		}
		size, err := binary.ReadUvarint(in)
		if err != nil {
			return err
		}
		text := make([]byte, size)
		if _, err := io.ReadFull(in, text); err != nil {
			return err
		}
		record[place[column-1]] = string(text)
	}
}
