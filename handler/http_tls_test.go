package handler_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windrow-go/windrow/handler"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	file        string // the certificate in PEM form
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "authority"},
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	a := authority{key: newKey(t)}
	der := signCertificate(t, template, template, a.key, a.key)
	a.certificate, _ = x509.ParseCertificate(der)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	a.file = writeFile(t, t.TempDir()+"/ca.pem", "the authority\n"+string(text), 0o600)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func signCertificate(t *testing.T, template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) []byte {
	t.Helper()
	template.SerialNumber = big.NewInt(1)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// serveTLS starts a server with a certificate for address that lasts for a time,
// over HTTP/2 as well, and returns its URL.
func (a authority) serveTLS(t *testing.T, address string, lasts time.Duration, serve http.HandlerFunc) string {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{NotAfter: time.Now().Add(lasts), IPAddresses: []net.IP{net.ParseIP(address)}}
	der := signCertificate(t, template, a.certificate, key, a.key)
	server := httptest.NewUnstartedServer(serve)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

func TestHTTPVerifiesCertificates(t *testing.T) {
	ours, other := newAuthority(t), newAuthority(t)
	fine := ours.serveTLS(t, "127.0.0.1", time.Hour, respond(200, "[1]"))
	expired := ours.serveTLS(t, "127.0.0.1", -time.Minute, respond(200, "[1]"))
	elsewhere := ours.serveTLS(t, "127.0.0.2", time.Hour, respond(200, "[1]"))
	tests := []struct{ name, url, authority, err string }{
		{"trusted", fine, ours.file, ""},
		{"of another authority", fine, other.file, "certificate signed by unknown authority"},
		{"of nobody whom the system trusts", fine, "", "certificate signed by unknown authority"},
		{"expired", expired, ours.file, "certificate has expired"},
		{"of another address", elsewhere, ours.file, "certificate is valid for 127.0.0.2, not 127.0.0.1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHTTP(t, handler.HTTPOptions{URL: tt.url, CAFile: tt.authority})
			got, err := h.Handle(t.Context(), row("{}"))
			if tt.err == "" && (err != nil || fmt.Sprintf("%s", got) != "[1]") {
				t.Errorf("got %s, %v", got, err)
			}
			if tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || verdict(err) != "unavailable") {
				t.Errorf("got %s, %v (%s), want %q", got, err, verdict(err), tt.err)
			}
		})
	}
}

func TestHTTPUsesHTTP2WithManyRowsAtOnce(t *testing.T) {
	a := newAuthority(t)
	var second, broken atomic.Int64
	address := a.serveTLS(t, "127.0.0.1", time.Hour, func(w http.ResponseWriter, r *http.Request) {
		second.Add(int64(r.ProtoMajor) - 1)
		if r.Header.Get("Windrow-Row-Id") == "7" && broken.Add(1)%50 == 0 {
			panic(http.ErrAbortHandler)
		}
		io.Copy(w, r.Body)
	})
	h := newHTTP(t, handler.HTTPOptions{URL: address, CAFile: a.file, MaxConnections: 2, Timeout: 20 * time.Second})
	var failed atomic.Int64
	var calls sync.WaitGroup
	for range 16 {
		calls.Go(func() {
			for range 25 {
				got, err := h.Handle(t.Context(), row("[1]"))
				switch {
				case err != nil && verdict(err) == "retry" && !strings.Contains(err.Error(), "timed out"):
					failed.Add(1)
				case err != nil || fmt.Sprintf("%s", got) != "[1]":
					t.Errorf("got %s, %v (%s)", got, err, verdict(err))
				}
			}
		})
	}
	calls.Wait()
	if second.Load() != 400 || failed.Load() != 8 {
		t.Errorf("%d requests over HTTP/2, %d failed", second.Load(), failed.Load())
	}
}

func TestHTTPRedirectOutOfTLSIsRefused(t *testing.T) {
	a := newAuthority(t)
	address := a.serveTLS(t, "127.0.0.1", time.Hour, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "http://"+r.Host+"/")
		w.WriteHeader(307)
	})
	_, err := newHTTP(t, handler.HTTPOptions{URL: address, CAFile: a.file}).Handle(t.Context(), row("{}"))
	if err == nil || verdict(err) != "permanent" || !strings.Contains(err.Error(), "not the same service") {
		t.Errorf("got %v", err)
	}
}

// proxyVariable makes this test binary handle one row at the URL that the
// variable holds: the proxy variables are read once in a process.
const proxyVariable = "HANDLER_TEST_URL"

func TestHTTPProxyIsTakenFromTheEnvironment(t *testing.T) {
	if address, ok := os.LookupEnv(proxyVariable); ok {
		h, err := handler.NewHTTP(handler.HTTPOptions{URL: address})
		if err != nil {
			fmt.Println("made:", err)
			return
		}
		got, err := h.Handle(t.Context(), row("{}"))
		fmt.Printf("got: %v, %v, %s\n", got, err, verdict(err))
		h.Close()
		return
	}
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		fmt.Fprint(w, "proxied "+r.RequestURI)
	})
	tests := []struct{ variable, url, want string }{
		{"HTTP_PROXY=" + proxy, "http://rows.invalid/a", "got: proxied http://rows.invalid/a, <nil>, retry"},
		{"HTTPS_PROXY=" + proxy, "https://rows.invalid/a", "got: <nil>, no connection to rows.invalid: Forbidden, unavailable"},
		{"HTTP_PROXY=ftp://me:secret@h", "http://rows.invalid/a", "made: http proxy: HTTP_PROXY in the environment is not the URL of a proxy"},
	}
	for _, tt := range tests {
		command := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		command.Env = append(os.Environ(), proxyVariable+"="+tt.url, tt.variable, "NO_PROXY=", "no_proxy=")
		output, err := command.CombinedOutput()
		if err != nil || !strings.Contains(string(output), tt.want) || strings.Contains(string(output), "secret") {
			t.Errorf("%s: got %v: %s", tt.variable, err, output)
		}
	}
}
