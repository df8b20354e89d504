package intake

import (
	"encoding/json"
	"fmt"
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
