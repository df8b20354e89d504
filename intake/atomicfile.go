package intake

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
)

// AtomicFile is a file that appears under its name whole or not at all. Until
// [AtomicFile.Commit] it is a hidden temporary file in the same folder, its name
// beginning with "." and ending in ".tmp". A name that is a symbolic link is
// followed; an existing file keeps its permissions.
//
// What isn't a regular file, such as a pipe or /dev/null, can't be replaced: it
// is written directly.
type AtomicFile struct {
	target string
	temp   string // empty where the target is written directly
	f      *os.File
	buf    *bufio.Writer
	done   bool
}

// CreateAtomic begins a file that is to appear at path.
func CreateAtomic(path string) (*AtomicFile, error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("write %s: it is a folder", path)
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		return newAtomicFile(path, "", f), nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	target, err := followLinks(path)
	if err != nil {
		return nil, err
	}
	f, err := createBeside(target)
	if err != nil {
		return nil, err
	}
	a := newAtomicFile(target, f.Name(), f)
	if info != nil {
		if err := f.Chmod(info.Mode().Perm()); err != nil {
			return nil, errors.Join(fmt.Errorf("keep the permissions of %s: %w", path, err), a.Abort())
		}
	}
	return a, nil
}

func newAtomicFile(target, temp string, f *os.File) *AtomicFile {
	return &AtomicFile{target: target, temp: temp, f: f, buf: bufio.NewWriterSize(f, 64<<10)}
}

// followLinks returns the name that a write to path creates or replaces, which
// need not exist yet.
func followLinks(path string) (string, error) {
	const most = 40
	for range most {
		to, err := os.Readlink(path)
		if err != nil { // no link, or nothing there
			return path, nil
		}
		if !filepath.IsAbs(to) {
			// Not Join: it would take a/../ away, where a may be a link too.
			to = filepath.Dir(path) + string(filepath.Separator) + to
		}
		path = to
	}
	return "", fmt.Errorf("write %s: too many symbolic links", path)
}

// createBeside creates the temporary file for target, with the permissions that
// target would get.
func createBeside(target string) (*os.File, error) {
	const tries = 100
	dir, prefix := tempPrefix(target)
	for try := 0; ; try++ {
		name := filepath.Join(dir, prefix+strconv.FormatUint(uint64(rand.Uint32()), 36)+tempSuffix)
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err == nil || !errors.Is(err, fs.ErrExist) || try == tries {
			return f, err
		}
	}
}

const tempSuffix = ".tmp"

// tempPrefix is how the names of target's temporary files begin, and their folder.
func tempPrefix(target string) (dir, prefix string) {
	const longest = 100
	dir, base := filepath.Split(target)
	return dir, "." + base[:min(len(base), longest)] + "."
}

// Write writes to the temporary file.
func (a *AtomicFile) Write(p []byte) (int, error) { return a.buf.Write(p) }

// Commit makes the file appear, once its content is safe on the disk. After an
// error the temporary file is gone, and the target as it was unless only the
// folder could not be synced. A second call, and one after Abort, is an error.
func (a *AtomicFile) Commit() error {
	if a.done {
		return fmt.Errorf("write %s: %w", a.target, fs.ErrClosed)
	}
	err := a.finish()
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", a.target, err), a.Abort())
	}
	a.done = true
	return nil
}

func (a *AtomicFile) finish() error {
	if err := a.buf.Flush(); err != nil {
		return err
	}
	if a.temp == "" {
		return a.f.Close()
	}
	if err := a.f.Sync(); err != nil {
		return err
	}
	if err := a.f.Close(); err != nil {
		return err
	}
	if err := os.Rename(a.temp, a.target); err != nil {
		return err
	}
	return syncDir(filepath.Dir(a.target))
}

// Abort removes the temporary file. After Commit, or a second time, it does
// nothing, so that it can be deferred.
func (a *AtomicFile) Abort() error {
	if a.done {
		return nil
	}
	a.done = true
	err := a.f.Close()
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	if a.temp == "" {
		return err
	}
	if gone := os.Remove(a.temp); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}

// syncDir makes a rename in the folder safe on the disk.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" { // can't sync a folder
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
