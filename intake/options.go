package intake

import (
	"fmt"
	"unicode/utf8"
)

// Options say how to read. The zero value reads every file as its name and
// content tell.
type Options struct {
	// Format of all files; Auto takes it from the name of each (.csv, .tsv,
	// .jsonl, .ndjson, .json, .geojson, .txt, .list, .parquet, .pq; with .gz
	// or .zst behind), else from its content: Parquet, JSON Lines and JSON are
	// recognised, anything else is lines.
	Format Format
	// Delimiter stands between the fields of a CSV file; 0 is a comma, and a
	// tab for files named .tsv. It can't be a quote, CR, LF or U+FFFD.
	Delimiter rune
	// TempDir is where a Parquet file from standard input, or a compressed one,
	// is put while it is read; empty is the system's folder for such files.
	TempDir string
}

func (o Options) validate() error {
	if _, err := ParseFormat(string(o.Format)); err != nil {
		return err
	}
	switch o.Delimiter {
	case 0:
		return nil
	case '"', '\r', '\n', utf8.RuneError:
		return fmt.Errorf("delimiter %q: it can't be a quote, a line end or U+FFFD", o.Delimiter)
	}
	if !utf8.ValidRune(o.Delimiter) {
		return fmt.Errorf("delimiter %U: it is no character", o.Delimiter)
	}
	return nil
}
