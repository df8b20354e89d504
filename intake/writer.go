package intake

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// WriterOptions say what is written of each line.
type WriterOptions struct {
	// Data adds what was read for the row, as "data". Merge sets it aside.
	Data bool
	// Merge writes the fields that were read and, beside them, those of the
	// result, so that the input comes back with new columns. Where both have a
	// field of the same name the result's value stands in the place of the
	// input's. A result or data that isn't an object stands under "result" or
	// "data". The user's fields keep their names whatever they are, so
	// windrow's own are called windrow_id, windrow_key, windrow_state and
	// windrow_error in every merged file; fields of these very names come from
	// an earlier merge and are replaced.
	Merge bool
	// TempDir is where a CSV file is put while its columns aren't all known;
	// empty is the system's folder. It needs room for the whole output.
	TempDir string
}

// Writer writes results as JSON Lines or CSV. Close it, or nothing may have been
// written. It is for one goroutine at a time.
//
// A JSON line has the fields id, key, state, result or error, and data, in this
// order, each only if there is one. A CSV file has the columns id, key, state,
// error, those of the results' top-level fields in order of first sight, and
// data; columns other than id and state only if any line has a value for them.
// A result's field of one of these names is called "result." and its name, a
// result that isn't an object stands in the column result. In CSV a null and a
// missing field are empty, objects and arrays are JSON text.
type Writer struct {
	opts WriterOptions
	sink sink
	row  fieldList
}

// sink takes finished lines.
type sink interface {
	write(fields *fieldList) error
	close() error
}

// NewWriter returns a writer to w in the format, which is JSONL or CSV.
func NewWriter(w io.Writer, format Format, opts WriterOptions) (*Writer, error) {
	out := &Writer{opts: opts}
	switch format {
	case JSONL:
		out.sink = &jsonlSink{w: bufio.NewWriterSize(w, 64<<10)}
	case CSV:
		spool, err := createTemp(opts.TempDir)
		if err != nil {
			return nil, err
		}
		out.sink = newCSVSink(w, spool, columnsFor(opts.Merge))
	default:
		return nil, fmt.Errorf("write results as %q: it must be jsonl or csv", format)
	}
	return out, nil
}

// Write writes one line.
func (w *Writer) Write(line Line) error {
	w.row.reset()
	switch _, csv := w.sink.(*csvSink); {
	case w.opts.Merge:
		w.row.merge(line)
	case csv:
		w.row.flat(line, w.opts.Data)
	default:
		w.row.plain(line, w.opts.Data)
	}
	if err := w.sink.write(&w.row); err != nil {
		return fmt.Errorf("write result of row %d: %w", line.ID, err)
	}
	return nil
}

// Close writes what has not been written yet. It doesn't close the io.Writer.
func (w *Writer) Close() error {
	if err := w.sink.close(); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// quoteText returns a text, which may be anything, as a JSON string.
func quoteText(text string) []byte {
	return appendQuoted(nil, strings.ToValidUTF8(text, "\ufffd"))
}
