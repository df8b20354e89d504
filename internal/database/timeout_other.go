//go:build !linux

package database

import "syscall"

// limitUnanswered has no counterpart here: the system's own limit holds.
func limitUnanswered(_, _ string, _ syscall.RawConn) error { return nil }
