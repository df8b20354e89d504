package handler

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// DefaultMaxResponse is how large a response of a service may be unless
// [HTTPOptions] say otherwise: 64 MiB.
const DefaultMaxResponse = 64 << 20

// HTTPOptions says where an [HTTP] sends rows, and how.
type HTTPOptions struct {
	// URL is where to POST to: http or https. A user and password in it are
	// sent as Basic authentication; they are in no error and no fingerprint.
	URL string
	// Headers are sent with every request, each as "Name: value". They replace
	// windrow's own Accept, Content-Type and User-Agent, and Host is the name
	// that the service is to see. Those that the handler or the protocol sets
	// (Content-Length, Idempotency-Key, Windrow-…) are refused.
	Headers []string
	// HeaderFiles are files with more of them, one a line, read once. Blank
	// lines and lines that begin with # are skipped. Secrets belong here: a
	// command line can be read by everybody on the machine.
	HeaderFiles []string
	// CAFile holds certificates in PEM form; if it is given, only these
	// authorities are trusted, instead of the system's. Only for https.
	CAFile string
	// Timeout is the most time that one request may take, from connecting to the
	// last byte of the response; zero means no limit but the context's. It is an
	// ordinary error, so the row is tried again.
	Timeout time.Duration
	// MaxResponse is how many bytes a response may have, after decompression;
	// more fails the row for good. Zero means [DefaultMaxResponse].
	MaxResponse int64
	// MaxConnections is how many connections there may be at once, all of which
	// are kept open between rows: the number of concurrent calls. Zero means no
	// limit, and up to 100 are kept.
	MaxConnections int
}

func (o HTTPOptions) withDefaults() HTTPOptions {
	o.MaxResponse = cmp.Or(o.MaxResponse, DefaultMaxResponse)
	return o
}

func (o HTTPOptions) validate() error {
	switch {
	case o.Timeout < 0:
		return fmt.Errorf("http timeout: %s is negative", o.Timeout)
	case o.MaxResponse < 0:
		return fmt.Errorf("http response limit: %d is negative", o.MaxResponse)
	case o.MaxConnections < 0:
		return fmt.Errorf("http connections: %d is negative", o.MaxConnections)
	}
	return nil
}

// target parses the URL. No error repeats it: it may hold a password.
func (o HTTPOptions) target() (*url.URL, error) {
	if strings.TrimSpace(o.URL) == "" {
		return nil, errors.New("http URL: it is empty")
	}
	u, err := url.Parse(o.URL)
	switch {
	case !hasHTTPScheme(o.URL):
		return nil, errors.New("http URL: it must begin with http:// or https://")
	case err != nil && strings.Contains(o.URL, "@"):
		return nil, errors.New("http URL: it is malformed (special characters in a user or password are written as %XX)")
	case err != nil:
		return nil, fmt.Errorf("http URL: it is malformed: %w", errors.Unwrap(err))
	case u.Hostname() == "":
		return nil, errors.New("http URL: it names no host")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return nil, fmt.Errorf("http URL: port %s is not between 1 and 65535", port)
		}
	}
	return u, nil
}

func hasHTTPScheme(text string) bool {
	scheme, _, ok := strings.Cut(text, "://")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// checkProxy reports a proxy that can't be one at once, and without the value of
// its variable, which may hold a password.
func checkProxy(target *url.URL) error {
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: target})
	schemes := []string{"http", "https", "socks5", "socks5h"}
	if err != nil || proxy != nil && (proxy.Hostname() == "" || !slices.Contains(schemes, proxy.Scheme)) {
		return fmt.Errorf("http proxy: %s_PROXY in the environment is not the URL of a proxy (%s)",
			strings.ToUpper(target.Scheme), strings.Join(schemes, ", "))
	}
	return nil
}

// authorities returns who is trusted to sign certificates; nil is the system's
// choice.
func (o HTTPOptions) authorities(target *url.URL) (*x509.CertPool, error) {
	if o.CAFile == "" {
		return nil, nil
	}
	if target.Scheme != "https" {
		return nil, fmt.Errorf("http CA file %s: it is of use only with https, and the URL begins with http://", o.CAFile)
	}
	contents, err := os.ReadFile(o.CAFile)
	if err != nil {
		return nil, fmt.Errorf("http CA file: %w", err)
	}
	pool := x509.NewCertPool()
	found := 0
	for block, rest := pem.Decode(contents); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		found++
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("http CA file %s: certificate %d: %w", o.CAFile, found, err)
		}
		pool.AddCert(certificate)
	}
	if found == 0 {
		return nil, fmt.Errorf("http CA file %s: there is no certificate in it (-----BEGIN CERTIFICATE-----)", o.CAFile)
	}
	return pool, nil
}

// httpFingerprint is over the URL without user and password, and the headers'
// names.
func httpFingerprint(target *url.URL, header http.Header) string {
	plain := *target
	plain.User, plain.Fragment, plain.RawFragment = nil, "", ""
	names := make([]string, 0, len(header))
	for name := range header {
		names = append(names, name)
	}
	slices.Sort(names)
	f := newFingerprint("http")
	f.add(plain.String())
	f.add(names...)
	return f.String()
}
