//go:build linux || darwin || freebsd

package doctor

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// errNoStatfs says that this system doesn't tell how much space is free.
var errNoStatfs = errors.New("this system does not tell how much space is free")

// freeSpace is what of the file system of path is free for ordinary users, in bytes.
func freeSpace(path string) (free, total int64, err error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return 0, 0, &fs.PathError{Op: "statfs", Path: path, Err: err}
	}
	return int64(stat.Bavail) * int64(stat.Bsize), int64(stat.Blocks) * int64(stat.Bsize), nil
}

// mayWrite tells whether this process may write there.
func mayWrite(path string) bool { return unix.Access(path, unix.W_OK) == nil }

// inodeOf is the number by which the system lists locks on a file; 0: there is none.
func inodeOf(path string) uint64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return stat.Ino
}
