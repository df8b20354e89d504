package database

import (
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// WatchSQLite tells of every write to the SQLite file at path, which this process has
// open and has read, by whichever process. It watches the file and its write-ahead log,
// not their folder: there others may write all the time, this process's own log among
// them.
//
// A write to the log can be read only when it is on the disk, which is later. The log
// is removed when the last connection of all processes is closed; that is an event too,
// and the last one of that file.
func WatchSQLite(path string) (*fsnotify.Watcher, error) {
	file, err := filepath.EvalSymlinks(path) // beside it is the log
	if err != nil {
		return nil, err
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	for _, name := range []string{file, file + "-wal"} {
		if err := watcher.Add(name); err != nil {
			watcher.Close()
			return nil, err
		}
	}
	return watcher, nil
}
