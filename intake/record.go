package intake

import "encoding/json"

// Record is one row read.
type Record struct {
	// File is the name of the file that the row stands in, as it was given;
	// "standard input" for "-".
	File string
	// Line is where the record starts, counted from 1: its line in the file,
	// for Parquet the number of the row.
	Line int64
	// Data is one JSON value without white space between its tokens, fit for a
	// jsonb column. It is the caller's to keep; it shares its memory with some
	// hundreds of kB of other records, so copy one that is kept alone for long.
	Data json.RawMessage
}
