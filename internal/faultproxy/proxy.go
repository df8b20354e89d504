package faultproxy

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"time"
)

// Proxy passes connections on to one server, and disturbs them when told to. Its
// methods may be called from several goroutines.
type Proxy struct {
	target   string
	listener net.Listener
	running  sync.WaitGroup

	mu     sync.Mutex
	links  map[*link]bool
	closed bool
	refuse bool
	delay  time.Duration
	hole   chan struct{} // not nil: half-open; closed when that ends
	cut    cut
	cuts   int
}

// Start listens on a free port of the loopback address for connections to the
// target, a "host:port". The caller owes it a Close.
func Start(target string) (*Proxy, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start a proxy: %w", err)
	}
	p := &Proxy{target: target, listener: listener, links: map[*link]bool{}}
	p.running.Go(p.accept)
	return p, nil
}

// Addr is the "host:port" to connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// URL returns a database's URL with the proxy in the server's place.
func (p *Proxy) URL(databaseURL string) (string, error) {
	u, err := url.Parse(databaseURL)
	if err != nil {
		return "", fmt.Errorf("the proxy's URL: %w", err)
	}
	u.Host = p.Addr()
	return u.String(), nil
}

// Close cuts every connection and returns when nothing of the proxy runs.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	err := p.listener.Close()
	p.CutAll()
	p.HalfOpen(false)
	p.running.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// CutAll resets all present connections, on both sides.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.reset()
	}
}

// Refuse makes the proxy reset new connections at once, or no longer. The present
// ones stay.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = on
}

// HalfOpen makes the proxy swallow what comes from either side, closing of
// connections included, like a network that has vanished; new connections get no
// answer. What was swallowed stays lost when it is turned off: a connection that
// was in use meanwhile may wait for ever, so that CutAll should come next.
func (p *Proxy) HalfOpen(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if on && p.hole == nil {
		p.hole = make(chan struct{})
	}
	if !on && p.hole != nil {
		close(p.hole)
		p.hole = nil
	}
}

// Delay makes what comes from either side wait before it is passed on; zero ends
// that. Messages that arrive together wait together.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		l := newLink(p, client)
		if !p.admit(l) {
			l.reset()
			continue
		}
		p.running.Go(func() {
			defer p.forget(l)
			l.run()
		})
	}
}

func (p *Proxy) admit(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.refuse {
		return false
	}
	p.links[l] = true
	return true
}

func (p *Proxy) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

func (p *Proxy) currentDelay() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delay
}

// currentHole is nil unless the proxy is half-open.
func (p *Proxy) currentHole() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hole
}
