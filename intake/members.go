package intake

import (
	"encoding/json"
	"iter"
)

// members gives the names and values of an object's top level, in order. The text
// must be JSON that has passed jsonb.Check; of anything but an object there are
// none. Names are unquoted, values as they stand.
func members(data []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		i := skipSpace(data, 0)
		if i == len(data) || data[i] != '{' {
			return
		}
		for i = skipSpace(data, i+1); i < len(data) && data[i] == '"'; {
			end := valueEnd(data, i)
			name := unquote(data[i:end])
			i = skipSpace(data, skipSpace(data, end)+1) // the colon
			end = valueEnd(data, i)
			if i >= end || !yield(name, data[i:end]) {
				return
			}
			i = skipSpace(data, skipSpace(data, end)+1) // the comma
		}
	}
}

// isObject tells whether a JSON value is an object.
func isObject(data []byte) bool {
	i := skipSpace(data, 0)
	return i < len(data) && data[i] == '{'
}

func skipSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\t' || data[i] == '\r') {
		i++
	}
	return min(i, len(data))
}

// valueEnd returns where the value that starts at i ends.
func valueEnd(data []byte, i int) int {
	depth := 0
	for ; i < len(data); i++ {
		switch data[i] {
		case '"':
			if i = quoteEnd(data, i); depth == 0 {
				return min(i+1, len(data))
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			} else if depth < 0 { // the end of what a bare value stands in
				return i
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
		}
	}
	return min(i, len(data))
}

// quoteEnd returns where the closing quote stands of the string that opens at i.
func quoteEnd(data []byte, i int) int {
	for i++; i < len(data) && data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return i
}

// unquote returns the text of a JSON string; without escapes in it, that is a
// part of the string itself.
func unquote(quoted []byte) []byte {
	for _, b := range quoted {
		if b == '\\' {
			var s string
			if json.Unmarshal(quoted, &s) != nil {
				return quoted
			}
			return []byte(s)
		}
	}
	if len(quoted) < 2 {
		return quoted
	}
	return quoted[1 : len(quoted)-1]
}
