package faultproxy

import (
	"slices"
	"strings"
)

// When is the moment at which a connection is cut at a COMMIT.
type When int

const (
	// BeforeForward cuts before the server sees the COMMIT: the transaction is
	// rolled back.
	BeforeForward When = iota + 1
	// AfterReply cuts when the server has answered the COMMIT, and drops the
	// answer: the transaction is over, and the client can't know.
	AfterReply
)

// cut is what CutAtCommit asked for.
type cut struct {
	countdown int // commits until the one to cut; 0: none
	when      When
	match     string
}

// CutAtCommit arms the proxy to reset the connection at the n-th COMMIT from now
// on (1: the next), counted over all connections. Only those transactions count in
// which a statement's text held match; an empty match means any. One cut, then
// the proxy is disarmed; arming again replaces what was armed.
func (p *Proxy) CutAtCommit(n int, when When, match string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut{countdown: n, when: when, match: match}
}

// Cuts is how many connections were cut at a COMMIT. After AfterReply it counts
// up only once the server has answered.
func (p *Proxy) Cuts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cuts
}

// atCommit counts a COMMIT that ends a transaction of the given statements, and
// says whether, and when, to cut there; 0 means not.
func (p *Proxy) atCommit(statements []string) When {
	p.mu.Lock()
	defer p.mu.Unlock()
	matches := func(text string) bool { return strings.Contains(text, p.cut.match) }
	if p.cut.countdown == 0 || (p.cut.match != "" && !slices.ContainsFunc(statements, matches)) {
		return 0
	}
	p.cut.countdown--
	if p.cut.countdown > 0 {
		return 0
	}
	return p.cut.when
}

func (p *Proxy) countCut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cuts++
}
