package intake

import "encoding/json"

// Line is one row's result, to be written.
type Line struct {
	ID    int64
	Key   *string // the user's own key; nil if the row has none
	State string
	// Result is a JSON value; nil if there is none, and not looked at where
	// HasError is set.
	Result json.RawMessage
	// Error is why the row failed, where HasError is set.
	Error    string
	HasError bool
	// Data is what was read for the row; the writer's options say whether it
	// is written.
	Data json.RawMessage
}
