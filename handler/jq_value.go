package handler

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxDepth is how deep a result may be nested: well above what the store takes,
// and low enough for recursion over it.
const maxDepth = 10_000

// decodeJSON reads one JSON value whose numbers keep their digits. Nothing at
// all is null.
func decodeJSON(text []byte) (any, error) {
	if len(text) == 0 {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("there is more after the first value")
	}
	return value, nil
}

// checkDepth refuses a value nested too deep: marshalling it would end the whole
// process by a stack overflow, which can't be caught.
func checkDepth(value any, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("the result is nested deeper than %d", maxDepth)
	}
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			if err := checkDepth(element, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, element := range value {
			if err := checkDepth(element, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
