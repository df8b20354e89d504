package metrics_test

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/windrow-go/windrow/internal/metrics"
)

func TestAddressWithoutAHostIsLoopback(t *testing.T) {
	tests := map[string]string{ // "" = an error
		"9090":             "127.0.0.1:9090",
		":9090":            "127.0.0.1:9090",
		"0":                "127.0.0.1:0",
		"127.0.0.1:9090":   "127.0.0.1:9090",
		"0.0.0.0:9090":     "0.0.0.0:9090",
		"[::]:9090":        "[::]:9090",
		"[::1]:9090":       "[::1]:9090",
		"localhost:9090":   "localhost:9090",
		"worker.lan:65535": "worker.lan:65535",
		"*:9090":           "",
		"localhost":        "",
		"65536":            "",
		":":                "",
		"":                 "",
		"::1":              "",
		"host:http":        "",
		"http://host:90":   "",
		"-1":               "",
	}
	for text, want := range tests {
		got, err := metrics.Address(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestAnAddressInUseIsSaid(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer taken.Close()
	_, err = metrics.Listen(t.Context(), taken.Addr().String())
	if err == nil || !strings.Contains(err.Error(), taken.Addr().String()+" is in use by another process: take another port") {
		t.Errorf("got %v", err)
	}
	if _, err = metrics.Listen(t.Context(), "no-such-host.invalid:1"); err == nil || !strings.Contains(err.Error(), "no-such-host.invalid") {
		t.Errorf("got %v", err)
	}
}

func TestTheRootListsThePathsAndNothingElseIsServed(t *testing.T) {
	url := serve(t, metrics.New())
	status, body := get(t, url+"/")
	equal(t, "status", status, http.StatusOK)
	for _, path := range []string{"/metrics", "/livez", "/readyz"} {
		if !strings.Contains(body, path) {
			t.Errorf("%s is not in %q", path, body)
		}
	}
	status, _ = get(t, url+"/debug/pprof/")
	equal(t, "status of another path", status, http.StatusNotFound)
	resp, err := client.Post(url+"/metrics", "text/plain", strings.NewReader("x"))
	check(t, err)
	resp.Body.Close()
	equal(t, "status of a POST", resp.StatusCode, http.StatusMethodNotAllowed)
}

func TestAClosedServerLeavesItsAddressFree(t *testing.T) {
	listener, err := metrics.Listen(t.Context(), "127.0.0.1:0")
	check(t, err)
	address := listener.Addr().String()
	server := metrics.Serve(listener, metrics.New(), zap.NewNop())
	idle, err := net.Dial("tcp", address) // says nothing, and is not waited for
	check(t, err)
	defer idle.Close()
	status, _ := get(t, "http://"+address+"/livez")
	equal(t, "status", status, http.StatusOK)
	server.Close()
	again, err := metrics.Listen(t.Context(), address)
	check(t, err)
	check(t, again.Close())
}
