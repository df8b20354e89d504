package handler

import (
	"os"

	"golang.org/x/sys/unix"
)

// unreadBytes is how much of what was written to a pipe still lies in it.
func unreadBytes(pipe *os.File) int64 {
	connection, err := pipe.SyscallConn()
	if err != nil {
		return 0
	}
	unread := 0
	connection.Control(func(fd uintptr) { // an error leaves it at 0
		unread, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ)
	})
	return int64(unread)
}
