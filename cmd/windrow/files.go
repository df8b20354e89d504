package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

// checkEnding refuses a name whose ending promises what isn't written.
func checkEnding(out namedFile) error {
	switch strings.ToLower(filepath.Ext(out.path)) {
	case ".json", ".geojson", ".parquet", ".pq", ".txt", ".list", ".tsv", ".xls", ".xlsx", ".ods",
		".xml", ".yaml", ".yml", ".avro", ".orc", ".arrow", ".feather", ".db", ".sqlite",
		".gz", ".gzip", ".zst", ".zstd", ".bz2", ".xz", ".zip":
		return usagef("%s %s: .jsonl or .csv is written", out.flag, out.path)
	}
	return nil
}

// checkWritable finds a missing or closed folder before the work instead of after it.
func checkWritable(out namedFile) error {
	if out.path == "" || out.path == "-" {
		return nil
	}
	path := out.path
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s %s is a folder: name a file", out.flag, out.path)
	case err == nil && !info.Mode().IsRegular():
		return nil // a pipe or a device: is written directly
	case err == nil:
		if target, err := filepath.EvalSymlinks(path); err == nil {
			path = target
		}
	}
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s %s: there is no folder %s", out.flag, out.path, dir)
	}
	probe, err := os.CreateTemp(dir, ".windrow-probe-*")
	if err != nil {
		return fmt.Errorf("%s %s can't be written: %w", out.flag, out.path, err)
	}
	probe.Close()
	return os.Remove(probe.Name())
}

// checkRejects is checkWritable for a file that is appended to.
func checkRejects(path string) error {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return checkWritable(namedFile{"--rejects", path})
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("--rejects: %w", err)
	}
	return file.Close()
}
