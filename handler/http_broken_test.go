package handler_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windrow-go/windrow/handler"
	"github.com/windrow-go/windrow/model"
)

// exchange is one request on a connection of a server that may do anything.
type exchange struct {
	net.Conn
	request           *http.Request
	connection, count int // both from 1
}

// rawServer answers each request by serve, which writes what it likes; when it
// has written nothing, or closed the connection, the connection is closed.
func rawServer(t testing.TB, serve func(exchange)) string {
	t.Helper()
	listener := listen(t)
	serveOn(t, listener, serve)
	return "http://" + listener.Addr().String()
}

func serveOn(t testing.TB, listener net.Listener, serve func(exchange)) {
	t.Helper()
	var connections sync.WaitGroup
	connections.Go(func() {
		for number := 1; ; number++ {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Go(func() {
				defer connection.Close()
				serveRaw(connection, number, serve)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		connections.Wait()
	})
}

// listen takes a free port; until somebody accepts, it lets connect and says
// nothing.
func listen(t testing.TB) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener
}

func serveRaw(connection net.Conn, number int, serve func(exchange)) {
	reader := bufio.NewReader(connection)
	for count := 1; ; count++ {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		io.Copy(io.Discard, request.Body)
		counting := &countingConn{Conn: connection}
		serve(exchange{counting, request, number, count})
		if counting.written == 0 {
			return
		}
	}
}

type countingConn struct {
	net.Conn
	written int
}

func (c *countingConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.written += n
	return n, err
}

// freeAddress is one where nobody listens.
func freeAddress(t testing.TB) string {
	t.Helper()
	listener := listen(t)
	listener.Close()
	return listener.Addr().String()
}

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, text)
	w.Close()
	return b.String()
}

func TestHTTPBrokenResponsesAreTriedAgain(t *testing.T) {
	zipped := gzipped(strings.Repeat("text", 1000))
	tests := map[string]struct{ response, want string }{
		"none":                      {"", "closed the connection without a response"},
		"half a status line":        {"HTTP/1.1 20", "no valid response from HOST: "},
		"no HTTP":                   {"hello\r\n\r\n", "malformed HTTP response"},
		"half the headers":          {"HTTP/1.1 200 OK\r\nContent-", "no valid response from HOST: "},
		"bad length":                {"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "no valid response from HOST: "},
		"endless headers":           {"HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", 100_000), "exceeded 262144 bytes"},
		"less than its length":      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n[1]", "the response of HOST broke off after 3 bytes: unexpected EOF"},
		"half a chunk":              {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n[1]", "broke off after 3 bytes: unexpected EOF"},
		"no last chunk":             {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n[1]\r\n", "broke off after 3 bytes: unexpected EOF"},
		"bad chunk":                 {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n[1]\r\n", "broke off after 0 bytes: invalid byte in chunk length"},
		"half a compressed body":    {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + zipped[:len(zipped)/2], "broke off after"},
		"not compressed after all":  {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n[1]", "broke off after 0 bytes"},
		"JSON cut without a length": {"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n[1, ", "unexpected end of JSON input"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			address := rawServer(t, func(e exchange) {
				io.WriteString(e, tt.response)
				e.Close()
			})
			got, err := post(t, address)
			want := strings.ReplaceAll(tt.want, "HOST", strings.TrimPrefix(address, "http://"))
			if got != nil || err == nil || !strings.Contains(err.Error(), want) || verdict(err) != "retry" {
				t.Errorf("got %v, %v (%s), want an ordinary error with %q", got, err, verdict(err), want)
			}
		})
	}
}

func TestHTTPResetConnectionIsTriedAgain(t *testing.T) {
	for _, response := range []string{"", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n[1]"} {
		address := rawServer(t, func(e exchange) {
			io.WriteString(e, response)
			e.Conn.(*countingConn).Conn.(*net.TCPConn).SetLinger(0)
			e.Close()
		})
		if _, err := post(t, address); err == nil || verdict(err) != "retry" || !strings.Contains(err.Error(), "connection reset by peer") {
			t.Errorf("got %v (%s)", err, verdict(err))
		}
	}
}

func TestHTTPWithoutConnectionIsUnavailable(t *testing.T) {
	plain := serve(t, respond(200, ""))
	closed := rawServer(t, func(exchange) {})
	silent := listen(t).Addr().String()
	tests := map[string]struct {
		url, want string
		timeout   time.Duration
	}{
		"refused":           {"http://" + freeAddress(t), "connection refused", 0},
		"unknown name":      {"http://nobody.invalid/", "no connection to nobody.invalid: dial tcp: lookup nobody.invalid", 0},
		"no TLS":            {strings.Replace(plain, "http", "https", 1), "first record does not look like a TLS handshake", 0},
		"TLS is hung up on": {strings.Replace(closed, "http", "https", 1), "EOF", 0},
		"no handshake":      {"https://" + silent, "timed out after 50ms", 50 * time.Millisecond},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHTTP(t, handler.HTTPOptions{URL: tt.url, Timeout: tt.timeout})
			_, err := h.Handle(t.Context(), row("{}"))
			if err == nil || !strings.Contains(err.Error(), tt.want) || verdict(err) != "unavailable" {
				t.Errorf("got %v (%s), want %q", err, verdict(err), tt.want)
			}
			if _, err = h.HandleBatch(t.Context(), rows(2)); err == nil || verdict(err) != "unavailable" {
				t.Errorf("the batch got %v (%s)", err, verdict(err))
			}
		})
	}
}

func TestHTTPServiceThatGoesAwayIsUnavailable(t *testing.T) {
	listener := listen(t)
	serveOn(t, listener, func(e exchange) {
		if e.count == 2 {
			listener.Close()
			return // hangs up
		}
		io.WriteString(e, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n[1]")
	})
	h := newHTTP(t, handler.HTTPOptions{URL: "http://" + listener.Addr().String()})
	if _, err := h.Handle(t.Context(), row("{}")); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Handle(t.Context(), row("{}")); err == nil || verdict(err) != "unavailable" {
		t.Errorf("got %v (%s)", err, verdict(err))
	}
}

func TestHTTPTimeoutCoversTheWholeExchange(t *testing.T) {
	tests := map[string]string{
		"no response":     "",
		"endless headers": "HTTP/1.1 200 OK\r\nA: ",
		"endless body":    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n[1]",
		"endless chunks":  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n[1]\r\n",
	}
	for name, response := range tests {
		t.Run(name, func(t *testing.T) {
			address := rawServer(t, func(e exchange) {
				io.WriteString(e, response)
				io.Copy(io.Discard, e) // until the client goes
			})
			h := newHTTP(t, handler.HTTPOptions{URL: address, Timeout: 50 * time.Millisecond})
			_, err := h.Handle(t.Context(), row("{}"))
			if err == nil || err.Error() != "timed out after 50ms" || verdict(err) != "retry" {
				t.Errorf("got %v (%s)", err, verdict(err))
			}
		})
	}
}

func TestHTTPEndlessBodyOfAnErrorIsLeftAlone(t *testing.T) {
	for status, want := range map[string]string{"400 No": "permanent", "503 No": "unavailable", "301 No": "permanent"} {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			address := rawServer(t, func(e exchange) {
				io.WriteString(e, "HTTP/1.1 "+status+"\r\nContent-Length: 5\r\n\r\n[1]")
				io.Copy(io.Discard, e)
			})
			_, err := post(t, address)
			if err == nil || verdict(err) != want || status != "301 No" && !strings.HasSuffix(err.Error(), ": [1]") {
				t.Errorf("got %v (%s)", err, verdict(err))
			}
		})
	}
}

func TestHTTPCancelIsTheCause(t *testing.T) {
	gone := errors.New("the claim is lost")
	for _, response := range []string{"", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n[1]"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		address := rawServer(t, func(e exchange) {
			io.WriteString(e, response)
			cancel(gone)
			io.Copy(io.Discard, e)
		})
		h := newHTTP(t, handler.HTTPOptions{URL: address, Timeout: time.Minute})
		if _, err := h.Handle(ctx, row("{}")); err != gone {
			t.Errorf("got %v", err)
		}
		if _, err := h.HandleBatch(ctx, rows(2)); err != gone {
			t.Errorf("the batch got %v", err)
		}
	}
}

func TestHTTPNothingIsSentAfterTheCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	address := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request came") })
	if _, err := newHTTP(t, handler.HTTPOptions{URL: address}).Handle(ctx, row("{}")); err != context.Canceled {
		t.Errorf("got %v", err)
	}
}

func TestHTTPLargeResponsesTakeLittleMemory(t *testing.T) {
	const limit = 1 << 20
	zipped := gzipped(strings.Repeat("0", 30<<20))
	tests := map[string]http.HandlerFunc{
		"declared": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(limit+1))
			io.WriteString(w, strings.Repeat("0", limit+1))
		},
		"not declared": func(w http.ResponseWriter, r *http.Request) {
			for text := strings.Repeat("0", 1<<16); ; {
				if _, err := io.WriteString(w, text); err != nil {
					return
				}
			}
		},
		"compressed": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, zipped)
		},
	}
	for name, server := range tests {
		t.Run(name, func(t *testing.T) {
			address := serve(t, server)
			h := newHTTP(t, handler.HTTPOptions{URL: address, MaxResponse: limit})
			before := allocated()
			_, err := h.Handle(t.Context(), row("{}"))
			if err == nil || !strings.HasSuffix(err.Error(), "is larger than 1048576 bytes") || verdict(err) != "permanent" {
				t.Errorf("got %v (%s)", err, verdict(err))
			}
			if used := allocated() - before; used > 16<<20 {
				t.Errorf("%d MiB were allocated", used>>20)
			}
		})
	}
}

func TestHTTPResponseUpToTheLimitIsTaken(t *testing.T) {
	for _, size := range []int{1000, 1 << 20} {
		address := serve(t, respond(200, strings.Repeat("a", size)))
		h := newHTTP(t, handler.HTTPOptions{URL: address, MaxResponse: int64(size)})
		if got, err := h.Handle(t.Context(), row("{}")); err != nil || len(got.(string)) != size {
			t.Errorf("got %.20v, %v", got, err)
		}
	}
}

func TestHTTPResultsAreNotOverwritten(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `["%s"]`, r.Header.Get("Windrow-Row-Id"))
	})
	h := newHTTP(t, handler.HTTPOptions{URL: address, MaxConnections: 8})
	var calls sync.WaitGroup
	for worker := range 8 {
		calls.Go(func() {
			var results []any
			for i := range 50 {
				result, err := h.Handle(t.Context(), model.Dataset{ID: int64(worker*100 + i)})
				if err != nil {
					t.Error(err)
				}
				results = append(results, result)
			}
			for i, result := range results {
				if want := fmt.Sprintf(`["%d"]`, worker*100+i); fmt.Sprintf("%s", result) != want {
					t.Errorf("got %s, want %s", result, want)
				}
			}
		})
	}
	calls.Wait()
}

func TestHTTPConnectionsAreUsedAgain(t *testing.T) {
	var connections, requests atomic.Int64
	address := rawServer(t, func(e exchange) {
		requests.Add(1)
		if e.count == 1 {
			connections.Add(1)
		}
		body := strings.Repeat("[1] ", 10_000) // longer than what is shown of it
		status := []string{"200 OK", "400 No", "503 No", "308 There"}[e.count%4]
		fmt.Fprintf(e, "HTTP/1.1 %s\r\nLocation: /%d\r\nContent-Length: %d\r\n\r\n%s", status, e.count, len(body), body)
	})
	h := newHTTP(t, handler.HTTPOptions{URL: address, MaxConnections: 4})
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			for range 15 {
				h.Handle(t.Context(), row("{}"))
			}
		})
	}
	calls.Wait()
	if connections.Load() > 4 || requests.Load() < 120 {
		t.Errorf("%d connections for %d requests", connections.Load(), requests.Load())
	}
}

func TestHTTPRequestIsSentAgainWhereAnIdleConnectionIsGone(t *testing.T) {
	var keys sync.Map
	address := rawServer(t, func(e exchange) {
		if e.connection == 1 && e.count == 2 {
			keys.Store("lost", e.request.Header.Get("Idempotency-Key"))
			return // hangs up
		}
		keys.Store("served", e.request.Header.Get("Idempotency-Key"))
		io.WriteString(e, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n[1]")
	})
	h := newHTTP(t, handler.HTTPOptions{URL: address, MaxConnections: 1})
	for range 2 {
		if _, err := h.Handle(t.Context(), row("{}")); err != nil {
			t.Error(err)
		}
	}
	lost, _ := keys.Load("lost")
	if served, _ := keys.Load("served"); lost != "/7/0" || served != lost {
		t.Errorf("sent with the keys %v and %v", lost, served)
	}
}

func TestHTTPLeavesNothingOpen(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		switch r.Header.Get("Windrow-Row-Id") {
		case "0":
			respond(200, "[1]")(w, r)
		case "1":
			respond(503, strings.Repeat("a", 1<<20))(w, r)
		case "2":
			respond(200, strings.Repeat("a", 1<<20))(w, r)
		default:
			<-r.Context().Done()
		}
	})
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	h, err := handler.NewHTTP(handler.HTTPOptions{URL: address, Timeout: 100 * time.Millisecond, MaxResponse: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	for worker := range 8 {
		calls.Go(func() {
			for i := range 4 {
				h.Handle(t.Context(), model.Dataset{ID: int64(3-i+worker) % 4})
			}
			h.Handle(t.Context(), model.Dataset{})
		})
	}
	calls.Wait()
	if runtime.NumGoroutine() <= goroutines || openFiles(t) <= files {
		t.Error("no connection is kept open between rows")
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	settle(t, func() string {
		if n, m := runtime.NumGoroutine(), openFiles(t); n > goroutines || m > files {
			return fmt.Sprintf("%d goroutines, before %d; %d files, before %d", n, goroutines, m, files)
		}
		return ""
	})
	if _, err := h.Handle(t.Context(), row("{}")); err == nil || !strings.Contains(err.Error(), "the handler is closed") {
		t.Errorf("after Close: %v", err)
	}
}

// settle waits until what says nothing any more; the runtime has no event for the
// end of somebody else's goroutine.
func settle(t *testing.T, what func() string) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		text := what()
		if text == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(text)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
