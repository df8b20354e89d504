//go:build unix && !linux

package handler

import "os"

// unreadBytes is not known here: every row that was sent counts as read.
func unreadBytes(*os.File) int64 { return 0 }
