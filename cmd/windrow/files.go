package main

import (
	"os"
	"path/filepath"
)

// namedFile is a file that a flag or an argument names.
type namedFile struct {
	flag string // or what else to call it
	path string
}

// checkDistinct refuses to write into a file that is read, or twice into one: an
// input would be replaced by the results, or grow by the records it is read from.
func checkDistinct(inputs []string, outputs ...namedFile) error {
	var seen []namedFile
	for _, input := range inputs {
		seen = append(seen, namedFile{"the input", input})
	}
	for _, out := range outputs {
		if out.path == "" || out.path == "-" {
			continue
		}
		for _, other := range seen {
			if sameFile(other.path, out.path) {
				return usagef("%s %s is the same file as %s: name another", out.flag, out.path, other.flag)
			}
		}
		seen = append(seen, out)
	}
	return nil
}

// sameFile also knows two names of one file, and a file that isn't there yet.
func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	if errA == nil && errB == nil {
		return infoA.Mode().IsRegular() && os.SameFile(infoA, infoB)
	}
	absA, errA := filepath.Abs(a)
	absB, errB := filepath.Abs(b)
	return errA == nil && errB == nil && absA == absB
}
