package handler_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windrow-go/windrow/handler"
	"github.com/windrow-go/windrow/model"
)

func newHTTP(t testing.TB, options handler.HTTPOptions) *handler.HTTP {
	t.Helper()
	h, err := handler.NewHTTP(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// serve starts a server on loopback and returns its URL.
func serve(t testing.TB, serve http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	return server.URL
}

// respond is a server that always gives the same response; headers come as name
// and value in turn.
func respond(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// post handles one row of no interest by the server at url.
func post(t *testing.T, url string) (any, error) {
	t.Helper()
	return newHTTP(t, handler.HTTPOptions{URL: url}).Handle(t.Context(), row("{}"))
}

// verdict tells what the marks on an error say.
func verdict(err error) string {
	text := "retry"
	switch {
	case model.IsPermanent(err):
		text = "permanent"
	case model.IsUnavailable(err):
		text = "unavailable"
	}
	if delay, ok := model.RetryDelay(err); ok {
		text += " after " + delay.String()
	}
	return text
}

func TestHTTPRequestCarriesTheRow(t *testing.T) {
	var got *http.Request
	var body string
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		got, body = r, string(data)
	})
	file := writeFile(t, t.TempDir()+"/headers", "# secrets\n\nX-Key: abc: d\r\nx-key: e\n", 0o600)
	h := newHTTP(t, handler.HTTPOptions{
		URL:         strings.Replace(address, "://", "://me:p%40ss@", 1) + "/label?model=a%20b",
		Headers:     []string{"host: labels.example", "Accept-Language:  de "},
		HeaderFiles: []string{file},
	})
	key := " a/b%\né\x00"
	dataset := row(`{"a": 1}`)
	dataset.Key, dataset.Job, dataset.Attempts, dataset.Round = &key, "job", 3, 2
	if result, err := h.Handle(t.Context(), dataset); result != nil || err != nil {
		t.Fatal(result, err)
	}
	if got.Method != "POST" || got.RequestURI != "/label?model=a%20b" || got.Host != "labels.example" || body != `{"a": 1}` {
		t.Errorf("got %s %s on %s with %q", got.Method, got.RequestURI, got.Host, body)
	}
	want := http.Header{
		"Accept":          {"application/json, */*;q=0.5"},
		"Accept-Encoding": {"gzip"},
		"Accept-Language": {"de"},
		"Authorization":   {"Basic bWU6cEBzcw=="},
		"Content-Length":  {"8"},
		"Content-Type":    {"application/json"},
		"Idempotency-Key": {"job/7/2"},
		"User-Agent":      {"windrow"},
		"Windrow-Attempt": {"3"},
		"Windrow-Row-Id":  {"7"},
		"Windrow-Row-Key": {"%20a/b%25%0A%C3%A9%00"},
		"X-Key":           {"abc: d", "e"},
	}
	if !reflect.DeepEqual(got.Header, want) {
		t.Errorf("got  %v\nwant %v", got.Header, want)
	}
	if key, err := url.PathUnescape(got.Header.Get("Windrow-Row-Key")); err != nil || key != *dataset.Key {
		t.Errorf("the key is read as %q, %v", key, err)
	}

	long := strings.Repeat("a", 5000)
	for _, key := range []*string{nil, &long} {
		dataset := row("")
		dataset.Key = key
		if _, err := h.Handle(t.Context(), dataset); err != nil || got.Header["Windrow-Row-Key"] != nil || body != "null" {
			t.Errorf("got %v, %v, %q", err, got.Header, body)
		}
	}
}

func TestHTTPHeadersReplaceTheDefaults(t *testing.T) {
	var got http.Header
	address := serve(t, func(w http.ResponseWriter, r *http.Request) { got = r.Header })
	headers := []string{"Content-Type: application/vnd.row+json", "Accept: text/plain", "User-Agent: me"}
	h := newHTTP(t, handler.HTTPOptions{URL: address, Headers: headers})
	if _, err := h.Handle(t.Context(), row("{}")); err != nil {
		t.Fatal(err)
	}
	if strings.Join(got["Content-Type"], "") != "application/vnd.row+json" || strings.Join(got["Accept"], "") != "text/plain" ||
		strings.Join(got["User-Agent"], "") != "me" {
		t.Errorf("got %v", got)
	}
}

func TestHTTPResponseIsTheResult(t *testing.T) {
	tests := []struct {
		status     int
		kind, body string
		want       any
		err        string
	}{
		{200, "application/json", `{"a": 1e400}`, json.RawMessage(`{"a": 1e400}`), ""},
		{201, "application/json; charset=utf-8", " [1,\n2]\n", json.RawMessage("[1,\n2]"), ""},
		{200, "application/json", "42\n", json.RawMessage("42"), ""},
		{200, "application/json", `"a"`, json.RawMessage(`"a"`), ""},
		{200, "Application/JSON", "null", json.RawMessage("null"), ""},
		{200, "application/problem+json", "\ufeff{}", json.RawMessage("{}"), ""},
		{200, "application/json", "", nil, ""},
		{200, "application/json", "[1", nil, "unexpected end of JSON input"},
		{200, "application/json", "{} {}", nil, `after top-level value; it begins "{} {}"`},
		{200, "application/json", "<html>", nil, `it begins "<html>"`},
		{202, "", `{"a":1}`, json.RawMessage(`{"a":1}`), ""},
		{200, "text/plain", "[1]\n", json.RawMessage("[1]"), ""},
		{200, "text/plain", "00501\n", "00501", ""},
		{200, "text/plain", "10501\n", "10501", ""},
		{200, "text/csv", "a\nb\n", "a\nb", ""},
		{200, "text/plain", "", nil, ""},
		{204, "", "", nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.kind+" "+tt.body, func(t *testing.T) {
			headers := []string{"Content-Type", tt.kind}
			if tt.kind == "" {
				headers = nil // the server finds out itself, as most do
			}
			got, err := post(t, serve(t, respond(tt.status, tt.body, headers...)))
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %T %q, want %T %q", got, got, tt.want, tt.want)
			}
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || verdict(err) != "retry") {
				t.Errorf("got %v, want an ordinary error with %q", err, tt.err)
			}
		})
	}
}

func TestHTTPStatusDecides(t *testing.T) {
	in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	tests := []struct {
		status           int
		retryAfter, date string
		want, text       string
	}{
		{400, "", "", "permanent", "400 Bad Request: no good"},
		{401, "", "", "permanent", "401 Unauthorized: no good"},
		{404, "9", "", "permanent", "404 Not Found: no good"},
		{413, "9", "", "permanent", "413 Request Entity Too Large: no good"},
		{422, "", "", "permanent", "422 Unprocessable Entity: no good"},
		{499, "", "", "permanent", "status 499: no good"},
		{408, "", "", "retry", "408 Request Timeout: no good"},
		{425, "", "", "retry", "425 Too Early: no good"},
		{500, "", "", "retry", "500 Internal Server Error: no good"},
		{500, "2", "", "retry after 2s", "500 Internal Server Error: no good"},
		{501, "", "", "retry", "501 Not Implemented: no good"},
		{599, "", "", "retry", "status 599: no good"},
		{429, "", "", "unavailable", "429 Too Many Requests: no good"},
		{429, "120", "", "unavailable after 2m0s", "429 Too Many Requests: no good"},
		{502, "", "", "unavailable", "502 Bad Gateway: no good"},
		{503, "0", "", "unavailable after 0s", "503 Service Unavailable: no good"},
		{503, "-5", "", "unavailable after 0s", "503 Service Unavailable: no good"},
		{503, "1.5", "", "unavailable after 1.5s", "503 Service Unavailable: no good"},
		{503, "99999999999999999999", "", "unavailable after 24h0m0s", "503 Service Unavailable: no good"},
		{503, "soon", "", "unavailable", "503 Service Unavailable: no good"},
		{503, "Infinity", "", "unavailable", "503 Service Unavailable: no good"},
		{503, "NaN", "", "unavailable", "503 Service Unavailable: no good"},
		{504, "Tue, 03 Mar 2020 10:00:30 GMT", "Tue, 03 Mar 2020 10:00:00 GMT", "unavailable after 30s", "504 Gateway Timeout: no good"},
		{503, "Tue, 03 Mar 2020 09:59:00 GMT", "Tue, 03 Mar 2020 10:00:00 GMT", "unavailable after 0s", "503 Service Unavailable: no good"},
		{503, "Tue, 03 Mar 2023 10:00:00 GMT", "Tue, 03 Mar 2020 10:00:00 GMT", "unavailable after 24h0m0s", "503 Service Unavailable: no good"},
		{503, in(-time.Hour), "no date", "unavailable after 0s", "503 Service Unavailable: no good"},
		{503, in(99 * time.Hour), "no date", "unavailable after 24h0m0s", "503 Service Unavailable: no good"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.status, tt.retryAfter, tt.date), func(t *testing.T) {
			var headers []string
			if tt.retryAfter != "" {
				headers = append(headers, "Retry-After", tt.retryAfter)
			}
			if tt.date != "" {
				headers = append(headers, "Date", tt.date)
			}
			got, err := post(t, serve(t, respond(tt.status, " no\tgood\n", headers...)))
			if got != nil || err == nil || err.Error() != tt.text || verdict(err) != tt.want {
				t.Errorf("got %v, %v (%s), want %s", got, err, verdict(err), tt.want)
			}
		})
	}
}

func TestHTTPRetryAfterDateIsComparedWithTheLocalClockIfNeedBe(t *testing.T) {
	date := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	_, err := post(t, serve(t, respond(503, "", "Retry-After", date, "Date", "no date")))
	if delay, ok := model.RetryDelay(err); !ok || delay < 59*time.Minute || delay > time.Hour {
		t.Errorf("got %v, %v", delay, ok)
	}
}

func TestHTTPCost(t *testing.T) {
	tests := []struct {
		status int
		cost   string
		want   any
		err    string
	}{
		{200, "0.02", model.Answer{Result: "fine", Cost: 0.02}, ""},
		{200, "0", model.Answer{Result: "fine"}, ""},
		{200, "-1", nil, "permanent"},
		{200, "NaN", nil, "permanent"},
		{200, "Inf", nil, "permanent"},
		{200, "1 $", nil, "permanent"},
		{500, "0.02", model.Answer{Cost: 0.02}, "retry"},
		{500, "1 $", nil, "retry"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.status, tt.cost), func(t *testing.T) {
			got, err := post(t, serve(t, respond(tt.status, "fine", "Windrow-Cost", tt.cost)))
			if !reflect.DeepEqual(got, tt.want) || (err == nil) != (tt.err == "") || err != nil && verdict(err) != tt.err {
				t.Errorf("got %v, %v (%s)", got, err, verdict(err))
			}
		})
	}
}

func TestHTTPErrorTextIsShortAndSafe(t *testing.T) {
	tests := []struct{ body, want string }{
		{"", "400 Bad Request"},
		{" a\r\n\r\n\tb\u2028c ", "400 Bad Request: a b c"},
		{"a\x00\x1b[31m\xff", "400 Bad Request: a\uFFFD\uFFFD[31m\uFFFD"},
		{strings.Repeat("é", 500), "400 Bad Request: " + strings.Repeat("é", 500)},
		{strings.Repeat("é", 60_000), "400 Bad Request: " + strings.Repeat("é", 500) + "…"},
		{strings.Repeat("€", 501), "400 Bad Request: " + strings.Repeat("€", 500) + "…"},
	}
	for _, tt := range tests {
		if _, err := post(t, serve(t, respond(400, tt.body))); err == nil || err.Error() != tt.want {
			t.Errorf("%.20q: got %v", tt.body, err)
		}
	}
}

func TestHTTPRedirectsThatKeepTheMethodAreFollowed(t *testing.T) {
	for _, status := range []int{307, 308} {
		var mu sync.Mutex
		var paths []string
		var last http.Header
		body := bytes.Repeat([]byte("[1]    "), 100_000)
		address := serve(t, func(w http.ResponseWriter, r *http.Request) {
			got, _ := io.ReadAll(r.Body)
			mu.Lock()
			defer mu.Unlock()
			paths, last = append(paths, r.Method+" "+r.URL.Path), r.Header
			if r.URL.Path != "/3" {
				http.Redirect(w, r, fmt.Sprintf("/%d", len(paths)), status)
				return
			}
			fmt.Fprint(w, bytes.Equal(got, body))
		})
		h := newHTTP(t, handler.HTTPOptions{URL: address + "/0", Headers: []string{"X-Key: abc"}})
		got, err := h.Handle(t.Context(), row(string(body)))
		if got != "true" || err != nil || strings.Join(paths, ", ") != "POST /0, POST /1, POST /2, POST /3" {
			t.Errorf("got %v, %v by %v", got, err, paths)
		}
		if last.Get("X-Key") != "abc" || last.Get("Idempotency-Key") != "/7/0" {
			t.Errorf("the last request had %v", last)
		}
	}
}

func TestHTTPOtherRedirectsAreErrors(t *testing.T) {
	elsewhere := serve(t, func(w http.ResponseWriter, r *http.Request) { t.Error("a request came through") })
	tests := []struct {
		status         int
		location, want string
	}{
		{301, "/b", "301 Moved Permanently: it leads to HERE/b; following it would turn the POST into a GET: use that URL"},
		{302, "/b?token=secret", "302 Found: it leads to HERE/b?…; following"},
		{303, "https://me:secret@there.example/", "303 See Other: it leads to https://there.example/; following"},
		{304, "", "304 Not Modified without a valid Location"},
		{307, "", "307 Temporary Redirect without a valid Location"},
		{307, "http://[", "307 Temporary Redirect without a valid Location"},
		{307, "mailto:me", "307 Temporary Redirect without a valid Location"},
		{307, elsewhere + "/b?token=secret", "307 Temporary Redirect: it leads to " + elsewhere + "/b?…, which is not the same service"},
		{308, "https://127.0.0.1/", "308 Permanent Redirect: it leads to https://127.0.0.1/, which is not the same service"},
		{308, "/a", " redirects more than 10 times"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.status, tt.location), func(t *testing.T) {
			address := serve(t, respond(tt.status, "", "Location", tt.location))
			_, err := post(t, address+"/a")
			want := strings.ReplaceAll(tt.want, "HERE", address)
			if err == nil || !strings.Contains(err.Error(), want) || verdict(err) != "permanent" || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v (%s), want %q", err, verdict(err), want)
			}
		})
	}
}

// Services that answer in JSON escape what they quote, each in its own way.
func TestHTTPSecretsInJSONAreInNoError(t *testing.T) {
	const key = `k/ey"<é+😀>sec/ret`
	for _, quoted := range []string{
		`k/ey\"<é+😀>sec/ret`,
		`k\/ey\"<é+😀>sec\/ret`,
		`k/ey\"\u003cé+😀\u003esec/ret`,
		`k\/ey\u0022\u003C\u00E9\u002B\uD83D\uDE00\u003Esec\/ret`,
		`k\/ey\"<\u00e9+\ud83d\ude00>sec\/ret`,
	} {
		h := newHTTP(t, handler.HTTPOptions{
			URL:     serve(t, respond(400, `{"error": "unknown key `+quoted+`, a <br> and a \u003cbr\u003e"}`)) + "/?short=%3Cbr%3E",
			Headers: []string{"X-Key: " + key},
		})
		_, err := h.Handle(t.Context(), row("{}"))
		if want := `unknown key ***, a <br> and a \u003cbr\u003e`; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", quoted, err, want)
		}
	}
}

func TestHTTPSecretsAreInNoError(t *testing.T) {
	echo := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(400)
		user, password, _ := r.BasicAuth()
		fmt.Fprintf(w, "you sent %s, that is %s and %s, and %s for %s of %s", r.Header.Get("Authorization"), user, password,
			r.Header.Get("X-Key"), r.URL.RawQuery, r.Header.Get("User-Agent"))
	})
	redirect := serve(t, respond(301, "", "Location", "/?token=querysecret"))
	hangUp := rawServer(t, func(exchange) {})
	refuses := "http://" + freeAddress(t)
	file := writeFile(t, t.TempDir()+"/headers", "X-Key: filesecret\n", 0o600)
	for _, address := range []string{echo, redirect, hangUp, refuses, strings.Replace(hangUp, "http", "https", 1)} {
		h := newHTTP(t, handler.HTTPOptions{
			URL:         strings.Replace(address, "://", "://usersecret:passsecret@", 1) + "/?token=querysecret",
			HeaderFiles: []string{file},
		})
		_, err := h.Handle(t.Context(), row("{}"))
		if err == nil || strings.Contains(fmt.Sprintf("%v %+v", err, err), "secret") || strings.Contains(err.Error(), "dXNlcnNlY3JldDpwYXNzc2VjcmV0") {
			t.Errorf("got %v", err)
		}
		if address == echo && err.Error() != "400 Bad Request: you sent ***, that is *** and ***, and *** for *** of windrow" {
			t.Errorf("got %v", err)
		}
		if _, err := h.HandleBatch(t.Context(), rows(2)); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v", err)
		}
	}
}
