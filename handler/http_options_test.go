package handler_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/windrow-go/windrow/handler"
)

func TestHTTPOptionsAreChecked(t *testing.T) {
	directory := t.TempDir()
	file := func(name, contents string) string { return writeFile(t, directory+"/"+name, contents, 0o600) }
	ca := newAuthority(t).file
	certificate, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	headers := func(lines ...string) handler.HTTPOptions {
		return handler.HTTPOptions{URL: "http://h", Headers: lines}
	}
	headerFile := func(contents string) handler.HTTPOptions {
		path := writeFile(t, t.TempDir()+"/headers", contents, 0o600)
		return handler.HTTPOptions{URL: "http://h", HeaderFiles: []string{path}}
	}
	authorities := func(path string) handler.HTTPOptions { return handler.HTTPOptions{URL: "https://h", CAFile: path} }
	tests := map[string]struct {
		options handler.HTTPOptions
		want    string
	}{
		"no URL":               {handler.HTTPOptions{URL: " "}, "http URL: it is empty"},
		"no scheme":            {handler.HTTPOptions{URL: "localhost:8080/x"}, "it must begin with http:// or https://"},
		"another scheme":       {handler.HTTPOptions{URL: "ftp://h"}, "it must begin with http:// or https://"},
		"no host":              {handler.HTTPOptions{URL: "http:///x"}, "it names no host"},
		"only a port":          {handler.HTTPOptions{URL: "http://:80/x"}, "it names no host"},
		"port 0":               {handler.HTTPOptions{URL: "http://h:0"}, "port 0 is not between 1 and 65535"},
		"large port":           {handler.HTTPOptions{URL: "http://h:65536"}, "port 65536 is not"},
		"bad port":             {handler.HTTPOptions{URL: "http://h:x"}, `it is malformed: invalid port ":x" after host`},
		"bad password":         {handler.HTTPOptions{URL: "http://me:se/cret@h"}, "it is malformed (special characters in a user or password"},
		"bad escape":           {handler.HTTPOptions{URL: "http://me:secret%@h"}, "it is malformed (special"},
		"negative timeout":     {handler.HTTPOptions{URL: "http://h", Timeout: -time.Second}, "http timeout: -1s is negative"},
		"negative response":    {handler.HTTPOptions{URL: "http://h", MaxResponse: -1}, "http response limit: -1 is negative"},
		"negative connections": {handler.HTTPOptions{URL: "http://h", MaxConnections: -1}, "http connections: -1 is negative"},
		"no colon":             {headers("A: b", "secret"), "http header 2: there is no colon in it"},
		"no name":              {headers(": secret"), "http header 1: what is before the colon is not a header's name"},
		"name with a space":    {headers("my secret: b"), "http header 1: what is before the colon is not a header's name"},
		"no value":             {headers("A:  "), "http header 1: A has no value"},
		"line break":           {headers("x-a: secret\r\nB: c"), "the value of X-A has a line break"},
		"NUL":                  {headers("A: secret\x00"), "the value of A has a line break or another control character"},
		"length":               {headers("content-length: 1"), "Content-Length can't be given: it is set from the body"},
		"idempotency key":      {headers("idempotency-Key: 1"), "Idempotency-Key can't be given: it is the row's"},
		"encoding":             {headers("Accept-Encoding: gzip"), "Accept-Encoding can't be given: the handler decompresses by itself"},
		"ours":                 {headers("windrow-attempt: 1"), "Windrow-Attempt can't be given: windrow sets"},
		"two hosts":            {headers("Host: a", "Host: b"), "http header Host: it must be given once"},
		"bad host":             {headers("Host: a/secret"), "http header Host: it must be given once, and be a host"},
		"two authorizations":   {handler.HTTPOptions{URL: "http://me:secret@h", Headers: []string{"authorization: secret"}}, "http header Authorization: the URL has a user, too"},
		"no header file":       {handler.HTTPOptions{URL: "http://h", HeaderFiles: []string{directory + "/none"}}, "http header file: open " + directory + "/none: no such file"},
		"a folder of headers":  {handler.HTTPOptions{URL: "http://h", HeaderFiles: []string{directory}}, "is a directory"},
		"empty header file":    {headerFile("\n# A: b\n"), "/headers: there is no header in it"},
		"bad line":             {headerFile("\ufeffA: b\r\n# c\n\nsecret\n"), "/headers:4: there is no colon in it"},
		"folded line":          {headerFile("A: b\n  secret: c\n"), "/headers:2: what is before the colon"},
		"large header file":    {headerFile(strings.Repeat("A: b\n", 300_000)), "/headers: it is larger than 1048576 bytes"},
		"no CA file":           {authorities(directory + "/none"), "http CA file: open " + directory + "/none: no such file"},
		"CA without TLS":       {handler.HTTPOptions{URL: "http://h", CAFile: ca}, "it is of use only with https"},
		"no certificate":       {authorities(file("no.pem", "secret")), "/no.pem: there is no certificate in it"},
		"a broken certificate": {authorities(file("broken.pem", string(certificate)+"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")), "/broken.pem: certificate 2: "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h, err := handler.NewHTTP(tt.options)
			if h != nil || err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestHTTPFingerprintTellsServicesApart(t *testing.T) {
	of := func(url string, headers ...string) string {
		return newHTTP(t, handler.HTTPOptions{URL: url, Headers: headers}).Fingerprint()
	}
	same := []string{
		of("http://h/a?b=c", "X-B: 1", "X-A: 1"),
		of("http://h/a?b=c", "x-a: 2", "x-b: 2"),
		of("http://me:secret@h/a?b=c", "x-a: 2", "x-b: 2"),
		of("http://me:other@h/a?b=c#d", "x-a: 2", "x-b: 2"),
	}
	for i, fingerprint := range same {
		// The first has no Authorization, by the URL or otherwise.
		if fingerprint != same[min(i, 2)] || len(fingerprint) != 12 {
			t.Errorf("%d: got %s, want %s", i, fingerprint, same[0])
		}
	}
	seen := map[string]string{}
	for _, url := range []string{"http://h/a", "https://h/a", "http://h/b", "http://i/a", "http://h:81/a", "http://h/a?b=c", "http://h/a?b=d"} {
		fingerprint := of(url)
		if other, ok := seen[fingerprint]; ok {
			t.Errorf("%s and %s have the same", url, other)
		}
		seen[fingerprint] = url
	}
	if of("http://h/a") == of("http://h/a", "A: b") {
		t.Error("a header's name doesn't count")
	}
	if got := of("http://h/a", "A: b"); got != "76a8a5ae72d6" {
		t.Errorf("got %s: it must stay the same in every version", got)
	}
}
