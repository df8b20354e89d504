package intake

import (
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// leaf reads the values of one column, one after another.
type leaf struct {
	name   string // with dots, for messages
	index  int    // among the columns of a row group
	encode encoder

	pages  parquet.Pages
	page   parquet.Page
	values parquet.ValueReader
	buf    []parquet.Value
	pos    int
	err    error
}

// leafBuffer is how many values of a column are fetched at once.
const leafBuffer = 256

// open goes to the first value of a column chunk.
func (l *leaf) open(chunk parquet.ColumnChunk) error {
	if err := l.close(); err != nil {
		return err
	}
	if l.buf == nil {
		l.buf = make([]parquet.Value, 0, leafBuffer)
	}
	l.buf, l.pos = l.buf[:0], 0
	l.pages = chunk.Pages()
	return nil
}

// head returns the next value without taking it. Where a damaged file has none,
// it is null, at level 0, and err is set.
func (l *leaf) head() *parquet.Value {
	if !l.more() {
		if l.err == nil {
			l.err = fmt.Errorf("column %q has fewer values than the file has rows: it is damaged", l.name)
		}
		return new(parquet.Value)
	}
	return &l.buf[l.pos]
}

// take returns the next value and goes on. The value is valid until the next call
// of any method.
func (l *leaf) take() *parquet.Value {
	v := l.head()
	l.pos = min(l.pos+1, len(l.buf))
	return v
}

// more tells whether the column chunk has another value.
func (l *leaf) more() bool {
	for l.pos == len(l.buf) && l.err == nil {
		if l.values == nil && !l.nextPage() {
			return false
		}
		n, err := l.values.ReadValues(l.buf[:cap(l.buf)])
		l.buf, l.pos = l.buf[:n], 0
		if err != nil && err != io.EOF {
			l.fail(err)
		}
		if n == 0 {
			l.releasePage()
		}
	}
	return l.err == nil
}

func (l *leaf) nextPage() bool {
	page, err := l.pages.ReadPage()
	if err != nil {
		if err != io.EOF {
			l.fail(err)
		}
		return false
	}
	l.page, l.values = page, page.Values()
	return true
}

func (l *leaf) fail(err error) { l.err = fmt.Errorf("column %q: %w", l.name, err) }

func (l *leaf) releasePage() {
	if l.page != nil {
		parquet.Release(l.page)
	}
	l.page, l.values = nil, nil
}

func (l *leaf) close() error {
	l.releasePage()
	if l.pages == nil {
		return nil
	}
	err := l.pages.Close()
	l.pages = nil
	return err
}
