package faultproxy

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// link is one connection through the proxy: the client's and its own to the
// server. Bytes are passed on message by message.
type link struct {
	proxy   *Proxy
	client  net.Conn
	session *session
	gone    chan struct{} // closed at the end
	silent  atomic.Bool   // the client hears nothing more: its COMMIT's answer is on the way

	mu     sync.Mutex
	server net.Conn // nil: not dialled yet
	isOver bool
}

func newLink(p *Proxy, client net.Conn) *link {
	return &link{proxy: p, client: client, session: newSession(), gone: make(chan struct{})}
}

// reset ends both connections at once, by RST, so that neither side takes it for
// an orderly end; what was on its way is lost.
func (l *link) reset() {
	l.end(func(conn net.Conn) {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // an error: it is closed already
		}
		_ = conn.Close()
	})
}

// close ends both connections in order: what was passed on arrives, such as a
// server's last words.
func (l *link) close() {
	l.end(func(conn net.Conn) { _ = conn.Close() })
}

// end does nothing the second time.
func (l *link) end(how func(net.Conn)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isOver {
		return
	}
	l.isOver = true
	close(l.gone)
	how(l.client)
	if l.server != nil {
		how(l.server)
	}
}

// run serves the link until either side ends it.
func (l *link) run() {
	defer l.close()
	server, err := net.DialTimeout("tcp", l.proxy.target, 10*time.Second)
	if err != nil || !l.adopt(server) {
		return
	}
	client, reply := bufio.NewReader(l.client), bufio.NewReader(server)
	understood, err := l.startUp(client, reply)
	if err != nil {
		l.awaitHole()
		return
	}
	var answers sync.WaitGroup
	answers.Go(func() {
		l.passAnswers(reply, understood)
		l.awaitHole()
		l.close()
	})
	l.passRequests(client, understood)
	l.awaitHole()
	l.close()
	answers.Wait()
}

// adopt is false, and the connection closed, when the link is over already.
func (l *link) adopt(server net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isOver {
		_ = server.Close()
		return false
	}
	l.server = server
	return true
}

// awaitHole keeps the end of one side from the other while the proxy is half-open.
func (l *link) awaitHole() {
	if hole := l.proxy.currentHole(); hole != nil {
		select {
		case <-hole:
		case <-l.gone:
		}
	}
}

// What a client's first messages, which have no type byte, ask for.
const (
	cancelRequest = 80877102
	sslRequest    = 80877103
	gssRequest    = 80877104
)

// startUp passes the client's first messages on, up to the one that names user
// and database. It is false when the rest of the connection is no PostgreSQL
// protocol in the clear: encrypted, or a request to cancel.
func (l *link) startUp(client, reply *bufio.Reader) (understood bool, err error) {
	for {
		message, err := readMessage(client, 0)
		if err != nil {
			return false, err
		}
		if err := l.pass(l.server, message, true); err != nil {
			return false, err
		}
		if len(message) < 8 {
			return false, io.ErrUnexpectedEOF
		}
		switch binary.BigEndian.Uint32(message[4:]) {
		case cancelRequest:
			return false, nil
		case sslRequest, gssRequest:
			answer, err := reply.ReadByte()
			if err != nil {
				return false, err
			}
			if err := l.pass(l.client, []byte{answer}, true); err != nil || answer != 'N' {
				return false, err
			}
		default:
			return true, nil
		}
	}
}

// passRequests passes on what the client says, and cuts at a COMMIT.
func (l *link) passRequests(client *bufio.Reader, understood bool) {
	if !understood {
		l.passBytes(l.server, client)
		return
	}
	for {
		waited := client.Buffered() == 0
		message, err := readMessage(client, 1)
		if err != nil {
			return
		}
		if texts, commit := l.session.hear(message[0], message[5:]); commit {
			switch l.proxy.atCommit(texts) {
			case BeforeForward:
				l.proxy.countCut()
				l.reset()
				return
			case AfterReply:
				l.silent.Store(true)
			}
		}
		if err := l.pass(l.server, message, waited); err != nil {
			return
		}
	}
}

// passAnswers passes on what the server says, or hides it until the COMMIT at
// which to cut is answered.
func (l *link) passAnswers(reply *bufio.Reader, understood bool) {
	if !understood {
		l.passBytes(l.client, reply)
		return
	}
	answered := false
	for {
		waited := reply.Buffered() == 0
		message, err := readMessage(reply, 1)
		if err != nil {
			return
		}
		if !l.silent.Load() {
			if err := l.pass(l.client, message, waited); err != nil {
				return
			}
			continue
		}
		answered = answered || endsCommit(message)
		if answered && message[0] == 'Z' { // ReadyForQuery
			l.proxy.countCut()
			l.reset()
			return
		}
	}
}

// endsCommit knows the answers to a COMMIT: done, rolled back instead, or an error.
func endsCommit(message []byte) bool {
	if message[0] == 'E' { // ErrorResponse
		return true
	}
	tag, _ := word(message[5:])
	return message[0] == 'C' && (tag == "COMMIT" || tag == "ROLLBACK")
}

func (l *link) passBytes(to net.Conn, from *bufio.Reader) {
	chunk := make([]byte, 32<<10)
	for {
		n, err := from.Read(chunk)
		if err != nil {
			return
		}
		if err := l.pass(to, chunk[:n], true); err != nil {
			return
		}
	}
}

// pass writes a message, after the delay if it came by itself; a half-open proxy
// drops it.
func (l *link) pass(to net.Conn, message []byte, waited bool) error {
	if delay := l.proxy.currentDelay(); delay > 0 && waited {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.gone:
			return net.ErrClosed
		}
	}
	if l.proxy.currentHole() != nil {
		return nil
	}
	_, err := to.Write(message)
	return err
}

// readMessage reads a message whole: a type byte or none, a length that counts
// itself, and the rest.
func readMessage(from io.Reader, typeBytes int) ([]byte, error) {
	const lengthBytes = 4
	head := make([]byte, typeBytes+lengthBytes)
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err
	}
	length := int(binary.BigEndian.Uint32(head[typeBytes:]))
	if length < lengthBytes || length > 1<<30 { // PostgreSQL's own bound
		return nil, io.ErrUnexpectedEOF
	}
	message := append(head, make([]byte, length-lengthBytes)...)
	_, err := io.ReadFull(from, message[len(head):])
	return message, err
}
