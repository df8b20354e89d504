package database

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/zap"
	"gorm.io/gorm"
)

func TestAWatchTellsOfWritesToTheFileAndOfNothingElse(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "job.db")
	db := opened(t, path)
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, link} {
		watcher, err := WatchSQLite(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "job.db-log"), []byte("noise"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := next(watcher, 100*time.Millisecond); got != 0 {
			t.Errorf("%s: %v, though another file was written", name, got)
		}
		other := opened(t, path)
		if err := other.Exec(`PRAGMA user_version = 1`).Error; err != nil {
			t.Fatal(err)
		}
		if got := next(watcher, 10*time.Second); !got.Has(fsnotify.Write) {
			t.Errorf("%s: got %v for a write", name, got)
		}
		Close(other)
		watcher.Close()
	}
	watcher, err := WatchSQLite(path)
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Close()
	Close(db) // the last one: so the log is removed
	for got := next(watcher, 10*time.Second); !got.Has(fsnotify.Remove); got = next(watcher, 10*time.Second) {
		if got == 0 {
			t.Fatal("the log was removed, and nothing told of it")
		}
	}
}

// opened is a connection that has read the file.
func opened(t *testing.T, path string) *gorm.DB {
	t.Helper()
	db, err := OpenSQLite(path, true, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := db.Raw(`SELECT count(*) FROM sqlite_schema`).Scan(&n).Error; err != nil {
		t.Fatal(err)
	}
	return db
}

// next is what happens next to what the files hold, or 0 if nothing does.
func next(watcher *fsnotify.Watcher, patience time.Duration) fsnotify.Op {
	over := time.After(patience)
	for {
		select {
		case event := <-watcher.Events:
			if event.Has(fsnotify.Write | fsnotify.Remove) {
				return event.Op
			}
		case <-over:
			return 0
		}
	}
}
