package handler

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/windrow-go/windrow/model"
)

const (
	// maxRetryAfter bounds what a handler may ask for: a slip of the pen there must
	// not put rows off for years.
	maxRetryAfter = 24 * time.Hour
	// errorJSONBytes is how much is kept of an error that is not a string.
	errorJSONBytes = 2 << 10
	// valueBytes is how much an error shows of a member that makes no sense.
	valueBytes = 40
)

// answer is what a stream's child or a service says of one row: an object, and the
// texts of its members, nil where one is absent. It need not be JSON in all its
// parts yet.
type answer struct {
	text []byte
	show func(text string) string // makes a text of the answer's fit for an error
	id   int64

	idText, result, failure, retryAfter, permanent, unavailable, cost []byte
}

// parseAnswer takes an object apart; ok tells whether it has the id of a row: a
// whole number, or the same as a string.
func parseAnswer(text []byte, show func(string) string) (a answer, ok bool) {
	text = bytes.TrimSpace(text)
	if !bytes.HasPrefix(text, []byte("{")) {
		return answer{}, false
	}
	a.text, a.show = text, show
	scanMembers(text[1:], func(name, value []byte) {
		switch string(name) {
		case `"id"`:
			a.idText = value
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
	a.id, ok = parseID(a.idText)
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

// decode returns what the answer says: the result, which is a part of its text, or
// an error, marked as it asks for; and what it cost. The rules are those of
// docs/handlers.md. An answer that breaks one is an error that says which, and the
// row is tried again; but a cost that can't be counted fails the row for good, since
// another try might cost as much, uncounted.
func (a *answer) decode() (result json.RawMessage, cost float64, err error) {
	if !json.Valid(a.text) {
		return nil, 0, a.malformed(fmt.Errorf("is not JSON: %w", whyNotJSON(a.text)))
	}
	cost, wrong := a.costValue()
	if wrong != nil {
		return nil, 0, model.Permanent(a.malformed(wrong))
	}
	switch failed := a.failed(); {
	case failed && isSet(a.result):
		err = a.malformed(errors.New(`has both "result" and "error"`))
	case failed:
		err = a.rowError()
	case a.result == nil:
		err = a.malformed(errors.New(`has neither "result" nor "error"`))
	default:
		result = a.result
	}
	return result, cost, err
}

// failed tells whether the answer is one of failure. An empty error beside a result
// is what a program writes that always writes both members.
func (a *answer) failed() bool {
	return isSet(a.failure) && (string(a.failure) != `""` || a.result == nil)
}

// rowError is the error that the answer tells of.
func (a *answer) rowError() error {
	permanent, wrong := a.flag("permanent", a.permanent)
	if wrong != nil {
		return a.malformed(wrong)
	}
	unavailable, wrong := a.flag("unavailable", a.unavailable)
	if wrong != nil {
		return a.malformed(wrong)
	}
	err := errors.New(a.errorText())
	if isSet(a.retryAfter) {
		delay, wrong := a.delay()
		if wrong != nil {
			return a.malformed(wrong)
		}
		err = model.RetryAfter(delay, err)
	}
	switch {
	case permanent && unavailable:
		return a.malformed(errors.New(`is both "permanent" and "unavailable"`))
	case permanent:
		return model.Permanent(err)
	case unavailable:
		return model.Unavailable(err)
	}
	return err
}

// errorText is the error, if it is a string, and else the beginning of its JSON text.
func (a *answer) errorText() string {
	var text string
	if json.Unmarshal(a.failure, &text) == nil {
		text = a.show(text)
	} else {
		text = a.excerpt(a.failure, errorJSONBytes)
	}
	if strings.TrimSpace(text) == "" {
		return "an error without a text"
	}
	return text
}

func (a *answer) flag(name string, value []byte) (set bool, wrong error) {
	switch {
	case !isSet(value), string(value) == "false":
		return false, nil
	case string(value) == "true":
		return true, nil
	}
	return false, a.senseless(name, value, "neither true nor false")
}

func (a *answer) costValue() (cost float64, wrong error) {
	if !isSet(a.cost) {
		return 0, nil
	}
	if err := json.Unmarshal(a.cost, &cost); err != nil || !isCost(cost) {
		return 0, a.senseless("cost", a.cost, "not a number of zero or more")
	}
	return cost, nil
}

// delay is the number of seconds, or the duration such as "90s", that the answer
// asks for.
func (a *answer) delay() (delay time.Duration, wrong error) {
	var text string
	if json.Unmarshal(a.retryAfter, &text) == nil {
		delay, err := time.ParseDuration(text)
		if err != nil || delay < 0 {
			return 0, a.senseless("retry_after", a.retryAfter, `not a duration such as "90s" or "1h30m", and not a number`)
		}
		return boundedDelay(delay), nil
	}
	// A number too large for a float64 is infinite here.
	seconds, err := strconv.ParseFloat(string(a.retryAfter), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || seconds < 0 {
		return 0, a.senseless("retry_after", a.retryAfter, "not a number of seconds of zero or more")
	}
	return secondsDelay(seconds), nil
}

// senseless says what is wrong with a member's value.
func (a *answer) senseless(name string, value []byte, what string) error {
	return fmt.Errorf("has the %q %s, which is %s", name, a.excerpt(value, valueBytes), what)
}

func (a *answer) malformed(wrong error) error {
	return fmt.Errorf("the answer %w; it begins %q", wrong, a.excerpt(a.text, beginBytes))
}

// excerpt is the beginning of a part of the answer, as an error shows it. It is cut
// only when it may be shown: half of a secret is not recognised as one.
func (a *answer) excerpt(part []byte, most int) string {
	text := a.show(string(part))
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// replyOf is the reply that says what decode has found.
func replyOf(result json.RawMessage, cost float64, err error) model.Reply {
	switch {
	case err != nil && cost > 0:
		return model.Reply{Result: model.Answer{Cost: cost}, Err: err}
	case err != nil:
		return model.Reply{Err: err}
	case cost > 0:
		return model.Reply{Result: model.Answer{Result: result, Cost: cost}}
	}
	return model.Reply{Result: result}
}

// isSet tells whether a member is there and is not null.
func isSet(value []byte) bool { return value != nil && string(value) != "null" }

func isCost(cost float64) bool { return cost >= 0 && !math.IsInf(cost, 1) }

func boundedDelay(delay time.Duration) time.Duration { return min(max(delay, 0), maxRetryAfter) }

// secondsDelay makes a duration of seconds, however many.
func secondsDelay(seconds float64) time.Duration {
	return boundedDelay(time.Duration(min(max(seconds, 0), maxRetryAfter.Seconds()) * float64(time.Second)))
}
