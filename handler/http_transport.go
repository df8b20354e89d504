package handler

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"time"
)

const (
	// connectTimeout is how long a connection may take to be made, and as long
	// again may the TLS handshake: a service that doesn't pick up is not there.
	connectTimeout = 10 * time.Second
	// idleTimeout is how long an unused connection is kept open.
	idleTimeout = 90 * time.Second
	// pingAfter is how long an HTTP/2 connection may be silent before it is
	// asked whether it still lives. All rows share it: without that, one lost
	// without a word would cost each of them its timeout.
	pingAfter = 15 * time.Second
	// maxResponseHeader is how many bytes a response's headers may have.
	maxResponseHeader = 256 << 10
	// idleWithoutLimit is how many connections are kept if their number is not
	// limited.
	idleWithoutLimit = 100
)

// newTransport makes what holds the connections, and a function that ends the
// making of new ones: the transport itself lets a dial live on when the request
// that wanted it is gone.
func newTransport(connections int, authorities *x509.CertPool) (*http.Transport, context.CancelFunc) {
	open, hangUp := context.WithCancel(context.Background())
	dialer := &net.Dialer{Timeout: connectTimeout}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if open.Err() != nil {
			return nil, errors.New("the handler is closed")
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(open, cancel)()
		return dialer.DialContext(ctx, network, address)
	}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dial,
		TLSClientConfig:        &tls.Config{RootCAs: authorities},
		TLSHandshakeTimeout:    connectTimeout,
		MaxIdleConnsPerHost:    cmp.Or(connections, idleWithoutLimit),
		MaxConnsPerHost:        connections,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxResponseHeader,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingAfter},
	}, hangUp
}
