package intake

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// RemoveAbandoned removes the temporary files that killed writers of path have left
// beside it. Nobody may be writing to path meanwhile.
func RemoveAbandoned(path string) error {
	target, err := followLinks(path)
	if err != nil {
		return err
	}
	dir, prefix := tempPrefix(target)
	entries, err := os.ReadDir(filepath.Clean(dir)) // Clean: none is the working folder
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		middle, ok := strings.CutPrefix(entry.Name(), prefix)
		if !ok || !entry.Type().IsRegular() || !tempMiddle.MatchString(middle) {
			continue
		}
		if gone := os.Remove(filepath.Join(dir, entry.Name())); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// tempMiddle is what follows the prefix: a number of 32 bits to the base 36.
var tempMiddle = regexp.MustCompile(`^[0-9a-z]{1,7}\.tmp$`)
