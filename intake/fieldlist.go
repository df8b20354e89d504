package intake

import (
	"bytes"
	"strconv"
)

// fieldList is one line to be written: names and JSON values in order.
type fieldList struct {
	fields []outField
	index  map[string]int // of fields, used once there are many
}

// outField is one field of a line to be written.
type outField struct {
	name  []byte
	value []byte // JSON
}

// The names that a line's own fields have in a merged line.
const (
	mergedID    = "windrow_id"
	mergedKey   = "windrow_key"
	mergedState = "windrow_state"
	mergedError = "windrow_error"
)

func (l *fieldList) reset() {
	l.fields = l.fields[:0]
	clear(l.index)
}

// plain lists the fields of a JSON line.
func (l *fieldList) plain(line Line, data bool) {
	l.own(line, "id", "key", "state", "error")
	if !line.HasError && line.Result != nil {
		l.add("result", line.Result)
	}
	if data && line.Data != nil {
		l.add("data", line.Data)
	}
}

// flat lists the fields of a CSV line.
func (l *fieldList) flat(line Line, data bool) {
	l.own(line, "id", "key", "state", "error")
	if !line.HasError && line.Result != nil {
		if !isObject(line.Result) {
			l.add("result", line.Result)
		}
		for name, value := range members(line.Result) {
			if isOwnName(name) {
				name = append([]byte("result."), name...)
			}
			l.set(name, value)
		}
	}
	if data && line.Data != nil {
		l.add("data", line.Data)
	}
}

func isOwnName(name []byte) bool {
	switch string(name) {
	case "id", "key", "state", "error", "result", "data":
		return true
	}
	return false
}

// merge lists the fields of a merged line.
func (l *fieldList) merge(line Line) {
	l.own(line, mergedID, mergedKey, mergedState, mergedError)
	l.beside("data", line.Data)
	if !line.HasError {
		l.beside("result", line.Result)
	}
}

// beside adds the fields of an object, or a value of another kind by its name.
func (l *fieldList) beside(name string, value []byte) {
	if value == nil {
		return
	}
	if !isObject(value) {
		l.set([]byte(name), value)
		return
	}
	for name, value := range members(value) {
		switch string(name) {
		case mergedID, mergedKey, mergedState, mergedError:
		default:
			l.set(name, value)
		}
	}
}

// own adds the fields that are windrow's.
func (l *fieldList) own(line Line, id, key, state, failure string) {
	l.add(id, strconv.AppendInt(nil, line.ID, 10))
	if line.Key != nil {
		l.add(key, quoteText(*line.Key))
	}
	l.add(state, quoteText(line.State))
	if line.HasError {
		l.add(failure, quoteText(line.Error))
	}
}

func (l *fieldList) add(name string, value []byte) {
	l.fields = append(l.fields, outField{[]byte(name), value})
}

// set adds a field, or puts the value in the place of an earlier one of its name.
func (l *fieldList) set(name, value []byte) {
	if i := l.find(name); i >= 0 {
		l.fields[i].value = value
		return
	}
	if l.index != nil {
		l.index[string(name)] = len(l.fields)
	}
	l.fields = append(l.fields, outField{name, value})
}

// find returns the place of the field, or -1. Few fields are looked through, many
// are indexed.
func (l *fieldList) find(name []byte) int {
	const few = 32
	if len(l.fields) <= few {
		for i := range l.fields {
			if bytes.Equal(l.fields[i].name, name) {
				return i
			}
		}
		return -1
	}
	if l.index == nil {
		l.index = make(map[string]int)
	}
	if len(l.index) == 0 {
		for i := range l.fields {
			l.index[string(l.fields[i].name)] = i
		}
	}
	if i, ok := l.index[string(name)]; ok {
		return i
	}
	return -1
}
