// Package intake reads files of rows, and writes files of results.
//
// A [Source] reads CSV, JSON Lines, JSON, plain lines and Parquet, compressed by
// gzip or zstd or not, from one file, several or standard input, and gives one
// [Record] after another. Whatever the format, a record's data is one compact
// JSON value that a PostgreSQL jsonb column can hold; what can't be read or held
// is a [BadRecord] that says where and why. Numbers keep every digit. Memory does
// not grow with the file: one record has at most 64 MiB.
//
//	format   a record is                       its position
//	csv      an object of strings              line where it starts
//	jsonl    the line's value                  line
//	json     an element of the array, or one   line where it starts
//	         of several values in a row
//	lines    the line, as a string             line
//	parquet  an object, by column              number of the row
//
// A [Digest] tells whether the first records of a file are still the same. [Field]
// takes a row's key out of its data.
//
// A [Writer] writes results as JSON Lines or CSV, an [AtomicFile] makes a file
// appear whole or not at all.
package intake
