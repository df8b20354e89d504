package database

import (
	"fmt"
	"net/url"

	"github.com/libtnb/sqlite"
	"go.uber.org/zap"
	"gorm.io/gorm"
)

// CheckFileSystem refuses a folder on a network file system, where an SQLite file
// isn't safe. One that can't be asked passes.
func CheckFileSystem(folder string) error { return checkFileSystem(folder) }

// LookAtSQLite opens the SQLite file at path for reading only, with the settings that
// it has. Even so SQLite makes a log (-wal, -shm) beside a file in WAL mode, and
// leaves it there; unless the file is said to be still. Then nothing is made, no
// locks are taken, and if somebody writes to the file after all, what is read may be
// wrong: it is for the caller to see whether the file has changed.
func LookAtSQLite(path string, still bool, log *zap.Logger) (*gorm.DB, error) {
	q := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(1000)"}}
	if still {
		q.Set("immutable", "1")
	}
	db, err := gorm.Open(wordless{sqlite.Open(sqliteURL(path, q))}, gormConfig(log))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, explainSQLite(path, err))
	}
	return db, nil
}
