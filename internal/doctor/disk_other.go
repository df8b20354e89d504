//go:build !(linux || darwin || freebsd)

package doctor

import "errors"

// errNoStatfs says that this system doesn't tell how much space is free.
var errNoStatfs = errors.New("this system does not tell how much space is free")

func freeSpace(string) (free, total int64, err error) { return 0, 0, errNoStatfs }

// mayWrite can't tell here: opening the file will.
func mayWrite(string) bool { return true }

func inodeOf(string) uint64 { return 0 }
