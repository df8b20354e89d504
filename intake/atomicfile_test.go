package intake_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windrow-go/windrow/intake"
)

// begin starts a file and writes content into it.
func begin(t *testing.T, path, content string) *intake.AtomicFile {
	t.Helper()
	a, err := intake.CreateAtomic(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	return a
}

func contentOf(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func TestAtomicFileAppearsAtCommit(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.csv")
	writeTo(t, path, "old")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	a := begin(t, path, "new")
	names := entries(t, dir)
	if len(names) != 2 || !strings.HasPrefix(names[0], ".out.csv.") || !strings.HasSuffix(names[0], ".tmp") {
		t.Errorf("before: %v", names)
	}
	if got := contentOf(t, path); got != "old" {
		t.Errorf("before: %q", got)
	}
	if err := a.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := a.Abort(); err != nil {
		t.Errorf("abort after commit: %v", err)
	}
	if got := contentOf(t, path); got != "new" || len(entries(t, dir)) != 1 {
		t.Errorf("after: %q, %v", got, entries(t, dir))
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("permissions: %v, %v", info.Mode(), err)
	}
	if err := a.Commit(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("second commit: %v", err)
	}
}

func TestAtomicFileLeavesNothingAfterAbort(t *testing.T) {
	dir := t.TempDir()
	a := begin(t, filepath.Join(dir, "out"), "x")
	for range 2 {
		if err := a.Abort(); err != nil {
			t.Fatal(err)
		}
	}
	if names := entries(t, dir); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
	if err := a.Commit(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("commit after abort: %v", err)
	}
}

func TestAtomicFileFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join("sub", "target"), link); err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"into nothing", "over a file"} {
		if err := begin(t, link, content).Commit(); err != nil {
			t.Fatal(err)
		}
		if got := contentOf(t, filepath.Join(dir, "sub", "target")); got != content {
			t.Errorf("got %q", got)
		}
		if info, err := os.Lstat(link); err != nil || info.Mode().Type() != fs.ModeSymlink {
			t.Errorf("the link became %v, %v", info, err)
		}
	}
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink("loop", loop); err != nil {
		t.Fatal(err)
	}
	if _, err := intake.CreateAtomic(loop); err == nil {
		t.Error("a link to itself was taken")
	}
}

func TestAtomicFileWritesDevicesDirectly(t *testing.T) {
	if err := begin(t, os.DevNull, "x").Commit(); err != nil {
		t.Fatal(err)
	}
	if err := begin(t, os.DevNull, "x").Abort(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Fatalf("the null device became %v, %v", info, err)
	}
}

func TestAtomicFileRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, path := range map[string]string{"a folder": dir, "a missing folder": filepath.Join(dir, "none", "out")} {
		if _, err := intake.CreateAtomic(path); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

func TestAtomicFileTakesLongNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), strings.Repeat("n", 255))
	if err := begin(t, path, "x").Commit(); err != nil {
		t.Fatal(err)
	}
	if got := contentOf(t, path); got != "x" {
		t.Errorf("got %q", got)
	}
}
