package handler

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/windrow-go/windrow/model"
)

const (
	// excerptRunes is how much of a foreign text is shown in an error.
	excerptRunes = 500
	// beginBytes is how much of a body is shown that has the wrong form.
	beginBytes = 80
)

// statusError says what a status other than 2xx means for the row; nil if it is
// a success.
func (h *HTTP) statusError(r response) error {
	if r.ok() {
		return nil
	}
	text := statusText(r.status)
	if start := h.safe(string(r.body)); start != "" {
		text += ": " + start
	}
	err := errors.New(text)
	switch r.status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		err = model.Unavailable(err)
	case http.StatusRequestTimeout, http.StatusTooEarly:
	default:
		if r.status < 500 {
			return model.Permanent(err)
		}
	}
	if delay, ok := retryAfter(r.header, time.Now()); ok {
		err = model.RetryAfter(delay, err)
	}
	return err
}

// statusText is a status with its usual words, not with the server's.
func statusText(status int) string {
	if words := http.StatusText(status); words != "" {
		return fmt.Sprintf("%d %s", status, words)
	}
	return fmt.Sprintf("status %d", status)
}

// retryAfter returns the delay that a response asks for. A date is compared with
// the response's own, so that no clock needs to be right.
func retryAfter(header http.Header, now time.Time) (time.Duration, bool) {
	value := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && !math.IsNaN(seconds) && !math.IsInf(seconds, 0) {
		return secondsDelay(seconds), true
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	if served, err := http.ParseTime(header.Get("Date")); err == nil {
		now = served
	}
	return boundedDelay(date.Sub(now)), true
}

// safe makes a text from outside fit for an error: on one line, not too long, and
// without what is secret.
func (h *HTTP) safe(text string) string {
	text = h.redactor.Replace(text[:min(len(text), textBytes)])
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '\uFFFD'
	}, text)
	runes := 0
	for i := range text {
		if runes++; runes > excerptRunes {
			return text[:i] + "…"
		}
	}
	return text
}

// responseResult makes the result of a success.
func (h *HTTP) responseResult(r response) (any, error) {
	if !isJSONType(r.header.Get("Content-Type")) {
		return result(r.body, false)
	}
	value := jsonText(r.body)
	switch {
	case len(value) == 0:
		return nil, nil
	case !json.Valid(value):
		return nil, fmt.Errorf("the response is not one JSON value, although its Content-Type says so: %w; it begins %q",
			whyNotJSON(value), h.safe(string(value[:min(len(value), beginBytes)])))
	}
	return json.RawMessage(value), nil
}

// jsonText is the body without white space around it, and without the byte-order
// mark that some servers write.
func jsonText(body []byte) []byte {
	return bytes.Trim(bytes.TrimPrefix(body, []byte("\ufeff")), " \t\r\n")
}

// isJSONType tells whether a Content-Type declares JSON.
func isJSONType(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	return kind == "application/json" || kind == "text/json" || strings.HasSuffix(kind, "+json")
}

// costHeader says what a call cost.
const costHeader = "Windrow-Cost"

// costIn returns the cost that a response names, if it does.
func costIn(header http.Header) (cost float64, ok bool, err error) {
	text := header.Get(costHeader)
	if text == "" {
		return 0, false, nil
	}
	cost, err = strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !isCost(cost) {
		return 0, false, fmt.Errorf("the response's %s is %.40q, not a number of zero or more", costHeader, text)
	}
	return cost, true, nil
}

// costOfFailure is what a failed call returns beside its error: its cost, if it
// is known.
func costOfFailure(header http.Header) any {
	if cost, ok, err := costIn(header); ok && err == nil {
		return model.Answer{Cost: cost}
	}
	return nil
}
