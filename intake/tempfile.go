package intake

import (
	"errors"
	"fmt"
	"os"
)

// tempFile is a file that nobody else sees: it is gone when it is closed and, where
// the system can remove an open file, also when the process dies.
type tempFile struct {
	*os.File
	removed bool
}

// createTemp makes one in dir; empty is the system's folder.
func createTemp(dir string) (tempFile, error) {
	f, err := os.CreateTemp(dir, ".windrow-*.tmp")
	if err != nil {
		return tempFile{}, fmt.Errorf("create temporary file: %w", err)
	}
	return tempFile{File: f, removed: os.Remove(f.Name()) == nil}, nil
}

// Close removes the file.
func (t tempFile) Close() error {
	err := t.File.Close()
	if !t.removed {
		err = errors.Join(err, os.Remove(t.Name()))
	}
	return err
}
