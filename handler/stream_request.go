package handler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/windrow-go/windrow/model"
)

// appendRequest appends the line by which a child is given a row. The data stays
// as it is, as far as it fits on one line.
func appendRequest(line []byte, row model.Dataset) ([]byte, error) {
	line = append(line, `{"id":`...)
	line = strconv.AppendInt(line, row.ID, 10)
	line = append(line, `,"key":`...)
	if row.Key == nil {
		line = append(line, "null"...)
	} else {
		line = appendString(line, *row.Key)
	}
	line = append(line, `,"attempt":`...)
	line = strconv.AppendInt(line, int64(row.Attempts), 10)
	line = append(line, `,"idempotency_key":`...)
	line = appendString(line, row.IdempotencyKey())
	line = append(line, `,"data":`...)
	line, err := appendData(line, row.Data)
	if err != nil {
		return line, model.Permanent(fmt.Errorf("the row's data is not JSON, and can't be put on one line: %w", err))
	}
	return append(line, "}\n"...), nil
}

// appendData appends the data on one line, even for readers that take U+2028 and
// U+2029 for the ends of lines, as Node's readline does. They stand in strings
// only, where they may be escaped.
func appendData(line []byte, data json.RawMessage) ([]byte, error) {
	begin := len(line)
	line, err := appendOneLine(line, data)
	if err != nil || !bytes.Contains(line[begin:], []byte("\u2028")) && !bytes.Contains(line[begin:], []byte("\u2029")) {
		return line, err
	}
	escaped := bytes.ReplaceAll(line[begin:], []byte("\u2028"), []byte(`\u2028`))
	escaped = bytes.ReplaceAll(escaped, []byte("\u2029"), []byte(`\u2029`))
	return append(line[:begin], escaped...), nil
}

// appendString appends text as a JSON string.
func appendString(line []byte, text string) []byte {
	for _, c := range []byte(text) {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(text) // a string can always be marshalled
			return append(line, quoted...)
		}
	}
	line = append(line, '"')
	line = append(line, text...)
	return append(line, '"')
}
