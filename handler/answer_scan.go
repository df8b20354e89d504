package handler

import (
	"bytes"
	"encoding/json"
)

// scanMembers calls take for the members of an object, of which text is all that
// follows the brace; a name comes with its quotes. Where text is no JSON, or ends
// too early, it does what can be done: NaN is a value, too.
func scanMembers(text []byte, take func(name, value []byte)) {
	for {
		text = bytes.TrimLeft(text, " \t\r\n")
		if len(text) == 0 || text[0] != '"' {
			return
		}
		end := stringEnd(text)
		name := plainName(text[:end])
		text = bytes.TrimLeft(text[end:], " \t\r\n")
		if len(text) == 0 || text[0] != ':' {
			return
		}
		text = bytes.TrimLeft(text[1:], " \t\r\n")
		end = valueEnd(text)
		if end == len(text) {
			return // cut off
		}
		take(name, bytes.TrimRight(text[:end], " \t\r\n"))
		if text[end] != ',' {
			return
		}
		text = text[end+1:]
	}
}

// stringEnd returns where the string ends that text begins with.
func stringEnd(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// valueEnd returns where the comma or the bracket stands that ends the value that
// text begins with.
func valueEnd(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i += stringEnd(text[i:]) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return len(text)
}

// plainName returns a member's name without escapes.
func plainName(name []byte) []byte {
	if bytes.IndexByte(name, '\\') < 0 {
		return name
	}
	var text string
	if json.Unmarshal(name, &text) != nil {
		return name
	}
	return []byte(`"` + text + `"`)
}
