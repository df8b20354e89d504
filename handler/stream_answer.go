package handler

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/windrow-go/windrow/model"
)

// answer is a line of a child's that names a row: the texts of its members, nil
// where one is absent. It need not be JSON in all its parts yet.
type answer struct {
	line []byte
	id   int64

	result, failure, retryAfter, permanent, unavailable, cost []byte
}

// parseAnswer takes a line apart if it looks like an object with the id of a row:
// a whole number, or the same as a string.
func parseAnswer(line []byte) (a answer, ok bool) {
	line = bytes.TrimSpace(line)
	if !bytes.HasPrefix(line, []byte("{")) {
		return answer{}, false
	}
	a.line = line
	scanMembers(line[1:], func(name, value []byte) {
		switch string(name) {
		case `"id"`:
			a.id, ok = parseID(value)
		case `"result"`:
			a.result = value
		case `"error"`:
			a.failure = value
		case `"retry_after"`:
			a.retryAfter = value
		case `"permanent"`:
			a.permanent = value
		case `"unavailable"`:
			a.unavailable = value
		case `"cost"`:
			a.cost = value
		}
	})
	return a, ok
}

func parseID(value []byte) (int64, bool) {
	if len(value) > 2 && value[0] == '"' {
		value = value[1 : len(value)-1]
	}
	id, err := strconv.ParseInt(string(value), 10, 64)
	var canonical [20]byte
	return id, err == nil && bytes.Equal(value, strconv.AppendInt(canonical[:0], id, 10))
}

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

// reply is what a handler returns for the answer. The result is a part of the
// line if that may be kept, and else a copy.
func (a *answer) reply(keep bool) (any, error) {
	if !json.Valid(a.line) {
		return nil, a.malformed("is not JSON: %w", whyNotJSON(a.line))
	}
	cost, err := a.costValue()
	if err != nil {
		return nil, err
	}
	failed := isSet(a.failure)
	switch {
	case !failed && a.result == nil:
		return nil, a.malformed(`has neither "result" nor "error"`)
	case failed && isSet(a.result):
		return nil, a.malformed(`has both "result" and "error"`)
	case failed && cost == 0:
		return nil, a.rowError()
	case failed:
		return model.Answer{Cost: cost}, a.rowError()
	}
	result := json.RawMessage(a.result)
	if !keep {
		result = bytes.Clone(a.result)
	}
	if cost == 0 {
		return result, nil
	}
	return model.Answer{Result: result, Cost: cost}, nil
}

// rowError is the error that the answer tells of.
func (a *answer) rowError() error {
	var text string
	if json.Unmarshal(a.failure, &text) != nil {
		return a.malformed(`has an "error" that is not a string`)
	}
	if text == "" {
		text = "an error without a text"
	}
	permanent, err := a.flag("permanent", a.permanent)
	if err != nil {
		return err
	}
	unavailable, err := a.flag("unavailable", a.unavailable)
	if err != nil {
		return err
	}
	failure := errors.New(text)
	if isSet(a.retryAfter) {
		delay, err := parseDelay(a.retryAfter)
		if err != nil {
			return a.malformed(`has a "retry_after" that is %w`, err)
		}
		failure = model.RetryAfter(delay, failure)
	}
	switch {
	case permanent && unavailable:
		return a.malformed(`is both "permanent" and "unavailable"`)
	case permanent:
		return model.Permanent(failure)
	case unavailable:
		return model.Unavailable(failure)
	}
	return failure
}

func (a *answer) flag(name string, value []byte) (bool, error) {
	switch {
	case !isSet(value), string(value) == "false":
		return false, nil
	case string(value) == "true":
		return true, nil
	}
	return false, a.malformed("has a member %q that is neither true nor false", name)
}

func (a *answer) costValue() (float64, error) {
	if !isSet(a.cost) {
		return 0, nil
	}
	var cost float64
	if err := json.Unmarshal(a.cost, &cost); err != nil || cost < 0 {
		return 0, a.malformed(`has a "cost" that is no number from 0 on`)
	}
	return cost, nil
}

// parseDelay reads a number of seconds, or a string such as "90s".
func parseDelay(value []byte) (time.Duration, error) {
	var text string
	if json.Unmarshal(value, &text) == nil {
		delay, err := time.ParseDuration(text)
		if err != nil || delay < 0 {
			return 0, fmt.Errorf(`no duration such as "90s" or "1h30m": %.40q`, text)
		}
		return delay, nil
	}
	var seconds float64
	err := json.Unmarshal(value, &seconds)
	if nanoseconds := seconds * float64(time.Second); err == nil && nanoseconds >= 0 && nanoseconds < math.MaxInt64 {
		return time.Duration(nanoseconds), nil
	}
	return 0, errors.New("no number of seconds from 0 on")
}

func (a *answer) malformed(format string, arguments ...any) error {
	why := fmt.Errorf(format, arguments...)
	return fmt.Errorf("the child's answer %w; it begins %q", why, beginning(a.line))
}

// isSet tells whether a member is there and is not null.
func isSet(value []byte) bool { return value != nil && string(value) != "null" }
