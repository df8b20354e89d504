package main

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/windrow-go/windrow/internal/database"
)

// plainText words an error for people: what the server says without driver
// decoration, and no statement text.
func plainText(err error) string {
	text := err.Error()
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		return strings.Replace(text, connect.Error(), connectText(connect), 1)
	}
	var server *pgconn.PgError
	if errors.As(err, &server) {
		text = strings.Replace(text, server.Error(), server.Message, 1)
		if server.Code == "42501" {
			text += "; docs/guarantees.md lists the privileges that each command needs"
		}
	}
	return text
}

// connectText says where windrow couldn't connect, and why. The driver tries every
// address with and without TLS, and tells of each; most of these reasons are the same.
func connectText(connect *pgconn.ConnectError) string {
	var reasons []string
	for _, err := range attempts(connect.Unwrap()) {
		if reason := connectReason(err); !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	if rest := slices.DeleteFunc(slices.Clone(reasons), isNoTLS); len(rest) > 0 {
		reasons = rest
	}
	return "can't connect to " + database.NameOf(connect.Config) + ": " + strings.Join(reasons, "; ")
}

// isNoTLS tells the reason of a server without TLS, which was then tried without.
func isNoTLS(reason string) bool { return strings.Contains(reason, "server refused TLS connection") }

// attempts are the errors that err joins.
func attempts(err error) []error {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		if joined, ok := inner.(interface{ Unwrap() []error }); ok {
			var all []error
			for _, one := range joined.Unwrap() {
				all = append(all, attempts(one)...)
			}
			return all
		}
	}
	return []error{err}
}

// connectReason is the inmost reason that says something by itself.
func connectReason(err error) string {
	var server *pgconn.PgError
	var system syscall.Errno
	var name *net.DNSError
	switch {
	case errors.As(err, &server):
		return server.Message
	case errors.As(err, &name):
		return "the host is not found: " + name.Err
	case errors.As(err, &system):
		return system.Error()
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return "no answer in time"
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err.Error()
}

func isTimeout(err error) bool {
	var network net.Error
	return errors.As(err, &network) && network.Timeout()
}
