package handler

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/windrow-go/windrow/model"
)

// HTTP handles rows by a service: a POST for each row, or for each batch.
//
// # Request
//
// The body is the row's data, as it is (Content-Type: application/json). Headers
// say which row it is: Idempotency-Key (see [model.Dataset.IdempotencyKey]),
// Windrow-Attempt (1 for the first try), Windrow-Row-Id, and Windrow-Row-Key if
// the row has a key, in which everything but visible ASCII, and %, is written as
// %XX; one that takes more than 4 KiB so is left out. For batches see
// [HTTP.HandleBatch]. A request may reach the service more than once within one
// try, if an open connection breaks before its response; the Idempotency-Key is
// the same.
//
// # Response
//
// With a status of 2xx, the body is the result. If Content-Type says JSON
// (application/json, …+json), it is stored as it is; if it is not valid then,
// that is an error, and the row is tried again: it may have been cut short.
// Anything else is taken as a command's output would be: a JSON object or array
// as such, another text as a string without its last newline. Nothing is null.
// A header Windrow-Cost: 0.02 says what the call cost, with other statuses, too;
// with 2xx, one that is not a number of zero or more fails the row for good, so
// that no budget is passed unseen.
//
// 429, 502, 503 and 504, and whatever prevents a connection (DNS, refused, TLS,
// none within 10 s or the timeout), are [model.Unavailable]: not the row's fault.
// 408, 425, any other 5xx, a connection that breaks, a response that is cut short
// or is no HTTP, and the timeout are ordinary errors: the row is tried again. For
// both, Retry-After (seconds or a date, taken as relative to the response's Date;
// at most a day) becomes [model.RetryAfter]; one that is malformed is ignored.
// Every other status, and a response larger than the limit, fails the row for
// good, with the first 500 characters of the body.
//
// 307 and 308 are followed up to ten times, with method, headers and body, but
// only to the same scheme, host and port: neither a row nor a secret header goes
// anywhere else. Every other redirect fails the row for good and says where it
// leads.
//
// No error holds the URL's user, password or query, or a header; where the
// service repeats one of them, *** is put in its place (words of eight
// characters or more).
//
// # Connections
//
// Connections are kept open and used again; HTTP/2 is used where the service
// offers it over TLS. Certificates are verified. A proxy is taken from the
// environment, HTTPS_PROXY, HTTP_PROXY and NO_PROXY, but not for localhost.
// Compressed responses are decompressed.
type HTTP struct {
	options     HTTPOptions
	target      *url.URL
	header      http.Header
	host        string // the Host header, if not the target's
	redactor    redactor
	transport   *http.Transport
	hangUp      context.CancelFunc
	fingerprint string
}

// NewHTTP checks the options and reads the files that they name. Nothing is sent
// yet. The handler is to be closed.
func NewHTTP(options HTTPOptions) (*HTTP, error) {
	options = options.withDefaults()
	if err := options.validate(); err != nil {
		return nil, err
	}
	target, err := options.target()
	if err != nil {
		return nil, err
	}
	if err := checkProxy(target); err != nil {
		return nil, err
	}
	header, err := options.header(target)
	if err != nil {
		return nil, err
	}
	authorities, err := options.authorities(target)
	if err != nil {
		return nil, err
	}
	h := &HTTP{
		options:     options,
		redactor:    newRedactor(target, header),
		fingerprint: httpFingerprint(target, header),
		host:        header.Get("Host"),
		header:      withDefaultHeaders(header),
	}
	header.Del("Host")
	h.target = withoutUser(target)
	h.transport, h.hangUp = newTransport(options.MaxConnections, authorities)
	return h, nil
}

// Fingerprint identifies the URL, with its query but without user and password,
// and the names of the headers. The headers' values don't count: a new token
// makes no other handler.
func (h *HTTP) Fingerprint() string { return h.fingerprint }

// Close closes the connections that are kept open. Calls that are still running
// are not cut short, but no new connection is made.
func (h *HTTP) Close() error {
	h.hangUp()
	h.transport.CloseIdleConnections()
	return nil
}

// Handle posts the row's data and returns a json.RawMessage, a string or nil, or
// a [model.Answer] with one of them and the cost.
func (h *HTTP) Handle(ctx context.Context, row model.Dataset) (any, error) {
	data := []byte(row.Data)
	if len(data) == 0 {
		data = []byte("null")
	}
	response, err := h.post(ctx, h.rowHeader(row), data)
	if err != nil {
		return nil, err
	}
	if err := h.statusError(response); err != nil {
		return costOfFailure(response.header), err
	}
	result, err := h.responseResult(response)
	if err != nil {
		return costOfFailure(response.header), err
	}
	cost, ok, err := costIn(response.header)
	switch {
	case err != nil:
		return nil, model.Permanent(err)
	case ok:
		return model.Answer{Result: result, Cost: cost}, nil
	}
	return result, nil
}

// mostKeyBytes is how long a row's key may be in a header: servers refuse
// requests with long ones.
const mostKeyBytes = 4 << 10

// rowHeader returns the headers of a row's request.
func (h *HTTP) rowHeader(row model.Dataset) http.Header {
	header := h.requestHeader(row.IdempotencyKey(), row.Attempts)
	header["Windrow-Row-Id"] = []string{strconv.FormatInt(row.ID, 10)}
	if row.Key != nil {
		if key := percentEncode(*row.Key); len(key) <= mostKeyBytes {
			header["Windrow-Row-Key"] = []string{key}
		}
	}
	return header
}

// requestHeader returns the headers that every request has.
func (h *HTTP) requestHeader(idempotencyKey string, attempt int32) http.Header {
	header := make(http.Header, len(h.header)+4)
	for name, values := range h.header {
		header[name] = values // shared: nobody writes into them
	}
	header["Idempotency-Key"] = []string{idempotencyKey}
	header["Windrow-Attempt"] = []string{strconv.Itoa(int(attempt))}
	return header
}

// percentEncode makes text fit for a header.
func percentEncode(text string) string {
	safe := func(c byte) bool { return '!' <= c && c <= '~' && c != '%' }
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; safe(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func withoutUser(u *url.URL) *url.URL {
	plain := *u
	plain.User = nil
	return &plain
}
