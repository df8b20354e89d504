// Package faultproxy is a TCP proxy for tests that breaks connections to a
// PostgreSQL server in ways that a network does, and at moments that matter: it
// reads the client's messages, so that it can cut exactly at a COMMIT, before the
// server has seen it or after the server has carried it out but before the client
// has heard of it.
//
// It reads the protocol in the clear only; a connection that turns to TLS is
// passed through without being understood. Of a simple query that holds several
// statements, a COMMIT among them is not recognised.
package faultproxy
