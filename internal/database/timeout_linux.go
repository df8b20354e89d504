package database

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// limitUnanswered ends a connection whose sent bytes stay unacknowledged for
// 30 s. Keepalive doesn't cover that case: without this, a statement sent into a
// cut cable would hang for a quarter of an hour.
func limitUnanswered(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		// A refusal (a unix socket) leaves the system's default: no error.
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 30_000)
	})
}
