package handler

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windrow-go/windrow/model"
)

const (
	maxRedirects = 10
	// A response that is no success is read for its text, and to its end so that
	// the connection can be used again, but not at any price.
	textBytes  = 4 << 10
	drainBytes = 60 << 10
	drainTime  = time.Second
)

// response is what came back: the whole body with status 2xx, else its
// beginning.
type response struct {
	status int
	header http.Header
	body   []byte
}

func (r response) ok() bool { return r.status/100 == 2 }

// post sends the body to the service, follows redirects, and returns the
// response, whatever its status.
func (h *HTTP) post(ctx context.Context, header http.Header, body []byte) (response, error) {
	if ctx.Err() != nil {
		return response{}, context.Cause(ctx)
	}
	ctx, stopTimer := withDeadline(ctx, h.options.Timeout)
	defer stopTimer()
	target := h.target
	for range maxRedirects + 1 {
		answer, err := h.send(ctx, target, header, body)
		if err != nil || answer.status/100 != 3 {
			return answer, err
		}
		target, err = redirect(target, answer)
		if err != nil {
			return response{}, model.Permanent(errors.New(h.safe(err.Error())))
		}
	}
	return response{}, model.Permanent(fmt.Errorf("%s redirects more than %d times", h.target.Host, maxRedirects))
}

// redirect returns where a 307 or 308 leads, and an error for every other
// redirect.
func redirect(from *url.URL, r response) (*url.URL, error) {
	status := statusText(r.status)
	location := r.header.Get("Location")
	to, err := from.Parse(location)
	if location == "" || err != nil || to.Host == "" {
		return nil, fmt.Errorf("%s without a valid Location", status)
	}
	where := shownURL(to)
	switch {
	case r.status != http.StatusTemporaryRedirect && r.status != http.StatusPermanentRedirect:
		return nil, fmt.Errorf("%s: it leads to %s; following it would turn the POST into a GET: use that URL", status, where)
	case !sameService(from, to):
		return nil, fmt.Errorf("%s: it leads to %s, which is not the same service, so that neither row nor headers are sent there: "+
			"use that URL if it is right", status, where)
	}
	return withoutUser(to), nil
}

// sameService tells whether to may have what was meant for from.
func sameService(from, to *url.URL) bool {
	return from.Scheme == to.Scheme && strings.EqualFold(from.Hostname(), to.Hostname()) && portOf(from) == portOf(to)
}

func portOf(u *url.URL) string {
	return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}

// shownURL is the URL without what may be secret.
func shownURL(u *url.URL) string {
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	if u.RawQuery != "" {
		return shown.String() + "?…"
	}
	return shown.String()
}

// send makes one exchange.
func (h *HTTP) send(ctx context.Context, target *url.URL, header http.Header, body []byte) (response, error) {
	exchange, cancel := context.WithCancel(ctx)
	defer cancel()
	var connected atomic.Bool
	exchange = httptrace.WithClientTrace(exchange, &httptrace.ClientTrace{
		GetConn: func(string) { connected.Store(false) },
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	request := (&http.Request{
		Method:        http.MethodPost,
		URL:           target,
		Host:          h.host,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        header,
		ContentLength: int64(len(body)),
		// With this and an Idempotency-Key, the transport sends a request again
		// if the server had closed the idle connection that it chose.
		GetBody: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil },
	}).WithContext(exchange)
	request.Body, _ = request.GetBody()
	// Not http.Client: it follows redirects to anywhere, and its errors quote the
	// URL.
	got, err := h.transport.RoundTrip(request)
	if err != nil {
		return response{}, h.exchangeError(ctx, connected.Load(), err)
	}
	defer got.Body.Close()
	answer := response{status: got.StatusCode, header: got.Header}
	if !answer.ok() {
		answer.body = readStart(got.Body, cancel)
		return answer, nil
	}
	answer.body, err = h.readAll(got)
	if err != nil && ctx.Err() != nil {
		return response{}, context.Cause(ctx)
	}
	return answer, err
}

// exchangeError translates the failure of an exchange that had no response. If
// there was no connection yet, it has nothing to do with the row.
func (h *HTTP) exchangeError(ctx context.Context, connected bool, err error) error {
	switch {
	case ctx.Err() == context.DeadlineExceeded && !connected:
		return model.Unavailable(fmt.Errorf("no connection to %s: %w", h.target.Host, context.Cause(ctx)))
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !connected:
		return model.Unavailable(fmt.Errorf("no connection to %s: %s", h.target.Host, h.safe(err.Error())))
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%s closed the connection without a response", h.target.Host)
	}
	return fmt.Errorf("no valid response from %s: %s", h.target.Host, h.safe(err.Error()))
}

// readStart reads the beginning of a response that is no success. How it ends
// doesn't matter: the status is known.
func readStart(body io.Reader, cancel context.CancelFunc) []byte {
	timer := time.AfterFunc(drainTime, cancel)
	defer timer.Stop()
	start, err := io.ReadAll(io.LimitReader(body, textBytes))
	if err == nil {
		io.CopyN(io.Discard, body, drainBytes)
	}
	return start
}

// buffers are for bodies: most are small, and their length is often unknown.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// mostPooled is how large a buffer may be to be used again.
const mostPooled = 64 << 10

// readAll reads the body of a response, up to the limit.
func (h *HTTP) readAll(got *http.Response) ([]byte, error) {
	limit := h.options.MaxResponse
	if got.ContentLength == 0 {
		return nil, nil
	}
	if got.ContentLength > limit {
		return nil, h.tooLarge()
	}
	buffer := buffers.Get().(*bytes.Buffer)
	buffer.Reset()
	n, err := buffer.ReadFrom(io.LimitReader(got.Body, limit+1))
	switch {
	case n > limit:
		return nil, h.tooLarge()
	case err != nil:
		return nil, fmt.Errorf("the response of %s broke off after %d bytes: %s", h.target.Host, n, h.safe(err.Error()))
	case buffer.Cap() > mostPooled:
		return buffer.Bytes(), nil
	}
	body := bytes.Clone(buffer.Bytes())
	buffers.Put(buffer)
	return body, nil
}

func (h *HTTP) tooLarge() error {
	return model.Permanent(fmt.Errorf("the response of %s is larger than %d bytes", h.target.Host, h.options.MaxResponse))
}
