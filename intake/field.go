package intake

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Field returns the value of a field of a row's data as the text of a key: a
// string without its quotes, a number as it is written, true or false. The error
// tells why there is none: the data is no object, or has no such field, or it is
// null, empty, an object or an array. Of a name that occurs twice the last counts,
// as in a jsonb column. The data must be a value that a [Source] gave, or one
// that a jsonb column can hold.
func Field(data json.RawMessage, name string) (string, error) {
	if !isObject(data) {
		return "", fmt.Errorf("field %q: the row is not a JSON object", name)
	}
	var value []byte
	for n, v := range members(data) {
		if string(n) == name {
			value = v
		}
	}
	if value == nil {
		return "", fmt.Errorf("field %q: the row has no such field", name)
	}
	switch value[0] {
	case '"':
		if text := unquote(value); len(text) > 0 {
			return string(text), nil
		}
		return "", fmt.Errorf("field %q: it is empty, which can't be a key", name)
	case 'n':
		return "", fmt.Errorf("field %q: it is null, which can't be a key", name)
	case '{', '[':
		return "", fmt.Errorf("field %q: it is an object or an array, which can't be a key", name)
	}
	return string(value), nil
}

// FieldTime returns the value of a field of a row's data as an instant: RFC 3339 text
// with its zone, or a number of seconds since 1970-01-01 00:00 UTC, which may have a
// fraction. It is the zero time if there is no such field, or it is null. For the sake
// of CSV, whose values are all text, empty text counts as null and text that is a number
// as that. Anything else is an error. Which data it may be, and what of names that occur
// twice, is as for [Field].
func FieldTime(data json.RawMessage, name string) (time.Time, error) {
	if !isObject(data) {
		return time.Time{}, fmt.Errorf("field %q: the row is not a JSON object", name)
	}
	var value []byte
	for n, v := range members(data) {
		if string(n) == name {
			value = v
		}
	}
	if value == nil || value[0] == 'n' {
		return time.Time{}, nil
	}
	text := string(value)
	if value[0] == '"' {
		if text = string(unquote(value)); text == "" {
			return time.Time{}, nil
		}
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil && value[0] == '"' {
		return at.UTC(), nil
	}
	if at, ok := unixSeconds(text); ok {
		return at, nil
	}
	return time.Time{}, fmt.Errorf("field %q: %.50s is no time: wanted is one such as 2026-12-24T18:00:00Z or 2026-12-24T18:00:00+01:00, "+
		"with its zone, or a number of seconds since 1970, up to the year %d", name, value, lastYear)
}

// lastYear is the last that RFC 3339 can say.
const lastYear = 9999

// unixSeconds reads a JSON number as an instant, to the microsecond.
func unixSeconds(text string) (time.Time, bool) {
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !json.Valid([]byte(text)) || math.Abs(seconds) > 1e12 {
		return time.Time{}, false
	}
	at := time.UnixMicro(int64(math.Round(seconds * 1e6))).UTC()
	return at, at.Year() >= 0 && at.Year() <= lastYear
}
