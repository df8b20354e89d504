package handler

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// maxHeaderFile is how large a file of headers may be; servers take less.
const maxHeaderFile = 1 << 20

// reservedHeaders belong to the protocol or to the handler, with what to say to
// somebody who gives one. Windrow-… is reserved, too.
var reservedHeaders = map[string]string{
	"Accept-Encoding":   "the handler decompresses by itself",
	"Connection":        "the handler keeps connections open by itself",
	"Content-Encoding":  "the body is sent as it is",
	"Content-Length":    "it is set from the body",
	"Expect":            "the body is sent at once",
	"Idempotency-Key":   "it is the row's",
	"Keep-Alive":        "the handler keeps connections open by itself",
	"Proxy-Connection":  "the handler keeps connections open by itself",
	"Te":                "it is the protocol's",
	"Trailer":           "it is the protocol's",
	"Transfer-Encoding": "it is set from the body",
	"Upgrade":           "it is the protocol's",
}

// openHeaders never hold a secret, so that what a service says about them can be
// shown.
var openHeaders = []string{"Accept", "Accept-Language", "Content-Type", "Host", "User-Agent"}

// header gathers the headers of every request. No error shows a value, or a line
// that may be one.
func (o HTTPOptions) header(target *url.URL) (http.Header, error) {
	header := http.Header{}
	for i, line := range o.Headers {
		if err := addHeader(header, line); err != nil {
			return nil, fmt.Errorf("http header %d: %w", i+1, err)
		}
	}
	for _, path := range o.HeaderFiles {
		if err := addHeaderFile(header, path); err != nil {
			return nil, err
		}
	}
	if target.User != nil {
		if header["Authorization"] != nil {
			return nil, errors.New("http header Authorization: the URL has a user, too; give one of them")
		}
		password, _ := target.User.Password()
		basic := base64.StdEncoding.EncodeToString([]byte(target.User.Username() + ":" + password))
		header.Set("Authorization", "Basic "+basic)
	}
	if host := header["Host"]; len(host) > 1 || len(host) == 1 && strings.ContainsAny(host[0], " \t/@?#") {
		return nil, errors.New("http header Host: it must be given once, and be a host with or without a port")
	}
	return header, nil
}

func addHeaderFile(header http.Header, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("http header file: %w", err)
	}
	defer file.Close()
	contents, err := io.ReadAll(io.LimitReader(file, maxHeaderFile+1))
	if err != nil {
		return fmt.Errorf("http header file: %w", err)
	}
	if len(contents) > maxHeaderFile {
		return fmt.Errorf("http header file %s: it is larger than %d bytes", path, maxHeaderFile)
	}
	number, found := 0, 0
	for line := range strings.Lines(strings.TrimPrefix(string(contents), "\ufeff")) {
		number++
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		found++
		if err := addHeader(header, line); err != nil {
			return fmt.Errorf("http header file %s:%d: %w", path, number, err)
		}
	}
	if found == 0 {
		return fmt.Errorf("http header file %s: there is no header in it", path)
	}
	return nil
}

// addHeader adds one "Name: value".
func addHeader(header http.Header, line string) error {
	name, value, ok := strings.Cut(line, ":")
	if !ok {
		return errors.New("there is no colon in it; write Name: value")
	}
	if !isHeaderName(name) {
		return errors.New("what is before the colon is not a header's name (letters, digits and - without spaces)")
	}
	name = http.CanonicalHeaderKey(name)
	why, reserved := reservedHeaders[name]
	switch value = strings.Trim(value, " \t"); {
	case reserved:
		return fmt.Errorf("%s can't be given: %s", name, why)
	case strings.HasPrefix(name, "Windrow-"):
		return fmt.Errorf("%s can't be given: windrow sets the headers that begin so", name)
	case value == "":
		return fmt.Errorf("%s has no value", name)
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
		return fmt.Errorf("the value of %s has a line break or another control character", name)
	}
	header.Add(name, value)
	return nil
}

// isHeaderName tells whether name is a token in the sense of RFC 9110.
func isHeaderName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		return !letter && (r < '0' || r > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

// withDefaultHeaders adds what the caller has not set.
func withDefaultHeaders(header http.Header) http.Header {
	for name, value := range map[string]string{
		"Accept":       "application/json, */*;q=0.5",
		"Content-Type": "application/json",
		"User-Agent":   "windrow",
	} {
		if header[name] == nil {
			header.Set(name, value)
		}
	}
	return header
}
