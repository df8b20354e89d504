package intake

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Format is a form in which files hold rows.
type Format string

// The formats. Auto is no format: the file's name tells, else its content.
const (
	Auto    Format = ""
	CSV     Format = "csv"     // with a header row; by the name .tsv with tabs
	JSONL   Format = "jsonl"   // one JSON value a line
	JSON    Format = "json"    // an array of values, or values in a row
	Lines   Format = "lines"   // each line a string
	Parquet Format = "parquet" // rows of columns
)

// Formats lists the formats by name, for help texts.
func Formats() []Format { return []Format{CSV, JSONL, JSON, Lines, Parquet} }

// ParseFormat returns the format of that name; the empty name is [Auto].
func ParseFormat(name string) (Format, error) {
	switch f := Format(strings.ToLower(name)); f {
	case Auto, CSV, JSONL, JSON, Lines, Parquet:
		return f, nil
	case "ndjson":
		return JSONL, nil
	case "tsv":
		return Auto, fmt.Errorf(`format "tsv": it is csv with a tab as delimiter`)
	}
	return Auto, fmt.Errorf("format %q: it must be one of csv, jsonl, json, lines, parquet", name)
}

// FormatOf returns the format that a file's name tells, or [Auto] if it tells
// none. The ending of a compressed file (.gz, .zst) is not looked at.
func FormatOf(name string) Format {
	switch innerExt(name) {
	case ".csv", ".tsv":
		return CSV
	case ".jsonl", ".ndjson":
		return JSONL
	case ".json", ".geojson":
		return JSON
	case ".txt", ".list":
		return Lines
	case ".parquet", ".pq":
		return Parquet
	}
	return Auto
}

// innerExt returns the ending of the name in lower case, without that of a
// compression.
func innerExt(name string) string {
	name = strings.ToLower(filepath.Base(name))
	if isCompressedName(name) {
		name = strings.TrimSuffix(name, filepath.Ext(name))
	}
	return filepath.Ext(name)
}

func isCompressedName(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".gz", ".gzip", ".zst", ".zstd":
		return true
	}
	return false
}
