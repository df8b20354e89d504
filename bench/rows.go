package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/windrow-go/windrow/checkout"
)

// row is the n-th row's data, about payload bytes of JSON.
func row(n, payload int) []byte {
	const overhead = len(`{"i":1000000,"pad":""}`)
	return fmt.Appendf(nil, `{"i":%d,"pad":"%s"}`, n, strings.Repeat("x", max(payload-overhead, 0)))
}

// appender is what both stores offer for filling.
type appender interface {
	BeginLoad(ctx context.Context, source string, after int64) (checkout.Load, error)
	Append(ctx context.Context, load *checkout.Load, chunk checkout.Chunk) error
}

// addRows fills a store by its own means.
func addRows(ctx context.Context, s appender, p Parameters) error {
	const chunkRows = 10_000
	load, err := s.BeginLoad(ctx, "bench", 0)
	if err != nil {
		return err
	}
	var chunk checkout.Chunk
	for n := 1; n <= p.Rows; n++ {
		chunk.Rows = append(chunk.Rows, checkout.NewRow{Data: row(n, p.Payload)})
		if len(chunk.Rows) == chunkRows || n == p.Rows {
			chunk.Records, chunk.Last = int64(n), n == p.Rows
			if err := s.Append(ctx, &load, chunk); err != nil {
				return err
			}
			chunk.Rows = chunk.Rows[:0]
		}
	}
	return nil
}

// format writes a file of rows.
type format struct {
	name, file string
	write      func(w *bufio.Writer, p Parameters) error
}

var formats = []format{
	{"JSON Lines", "rows.jsonl", func(w *bufio.Writer, p Parameters) error { return writeRows(w, p, "", "\n", "") }},
	{"JSON array", "rows.json", func(w *bufio.Writer, p Parameters) error { return writeRows(w, p, "[", ",\n", "]") }},
	{"CSV", "rows.csv", writeCSV},
	{"Parquet", "rows.parquet", writeParquet},
}

func writeRows(w *bufio.Writer, p Parameters, before, between, after string) error {
	_, err := w.WriteString(before)
	for n := 1; n <= p.Rows && err == nil; n++ {
		_, err = w.Write(row(n, p.Payload))
		if n < p.Rows || after == "" {
			_, _ = w.WriteString(between) // a failed writer stays failed
		}
	}
	_, _ = w.WriteString(after)
	return err
}

// fields are a row's, for the formats that have columns.
type fields struct {
	I   int64  `json:"i" parquet:"i"`
	Pad string `json:"pad" parquet:"pad"`
}

func fieldsOf(n int, p Parameters) (f fields) {
	_ = json.Unmarshal(row(n, p.Payload), &f) // our own
	return f
}

func writeCSV(w *bufio.Writer, p Parameters) error {
	_, err := w.WriteString("i,pad\n")
	for n := 1; n <= p.Rows && err == nil; n++ {
		f := fieldsOf(n, p)
		_, err = fmt.Fprintf(w, "%d,%s\n", f.I, f.Pad)
	}
	return err
}

func writeParquet(w *bufio.Writer, p Parameters) error {
	out := parquet.NewGenericWriter[fields](w)
	for n := 1; n <= p.Rows; n++ {
		if _, err := out.Write([]fields{fieldsOf(n, p)}); err != nil {
			return err
		}
	}
	return out.Close()
}

// writeFile makes a file in one of the formats.
func (f format) writeFile(path string, p Parameters) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	w := bufio.NewWriterSize(file, 1<<20)
	if err := f.write(w, p); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return file.Close()
}
