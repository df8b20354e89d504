package handler

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// errNoOutput: a command of which JSON is demanded has to say at least null.
var errNoOutput = errors.New("the command wrote nothing, where JSON is demanded")

// result makes the result of a command from all that it wrote.
func result(written []byte, demandJSON bool) (any, error) {
	value := bytes.Trim(written, " \t\r\n")
	structure := len(value) > 0 && (value[0] == '{' || value[0] == '[')
	switch {
	case demandJSON && len(value) == 0:
		return nil, errNoOutput
	case demandJSON && !json.Valid(value):
		return nil, notJSON(value)
	case demandJSON, structure && json.Valid(value):
		return json.RawMessage(value), nil
	case len(written) == 0:
		return nil, nil
	}
	text, ok := bytes.CutSuffix(written, []byte("\n"))
	if ok {
		text = bytes.TrimSuffix(text, []byte("\r"))
	}
	return string(text), nil
}

// notJSON says why, and shows how the output begins.
func notJSON(value []byte) error {
	return fmt.Errorf("the command's output is not one JSON value: %w; it begins %q", whyNotJSON(value), beginning(value))
}

// whyNotJSON is what keeps text from being one JSON value.
func whyNotJSON(text []byte) error {
	var discard json.RawMessage
	return json.Unmarshal(text, &discard)
}

// beginning is as much of text as an error shows.
func beginning(text []byte) []byte { return text[:min(len(text), 80)] }
