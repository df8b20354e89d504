package database

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/libtnb/sqlite"
	"go.uber.org/zap"
	"gorm.io/gorm"
)

// sqliteConnections: one to write and a few to read and to look beside it.
const sqliteConnections = 4

// OpenSQLite opens the SQLite database file at path, which is made if create is
// set and must exist otherwise. The file is in WAL mode with synchronous=FULL: a
// commit that was answered survives a power cut. A file with other tables than
// windrow's is refused with [ErrForeign], and is left as it was.
func OpenSQLite(path string, create bool, log *zap.Logger) (*gorm.DB, error) {
	if err := checkFile(path, create); err != nil {
		return nil, err
	}
	db, err := gorm.Open(wordless{sqlite.Open(sqliteDSN(path))}, gormConfig(log))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, explainSQLite(path, err))
	}
	pool, err := db.DB()
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	pool.SetMaxOpenConns(sqliteConnections)
	pool.SetMaxIdleConns(sqliteConnections)
	if err := pool.Ping(); err != nil {
		pool.Close()
		return nil, fmt.Errorf("open %s: %w", path, explainSQLite(path, err))
	}
	return db, nil
}

func sqliteDSN(path string) string {
	q := url.Values{}
	q.Set("_journal_mode", "WAL")
	q.Set("_synchronous", "FULL")
	q.Set("_busy_timeout", "10000")
	q.Set("_txlock", "immediate")
	q.Set("_foreign_keys", "1")
	q.Set("_timezone", "UTC")
	q.Add("_pragma", "cache_size(-32000)")
	q.Add("_pragma", "journal_size_limit(67108864)")
	return sqliteURL(path, q)
}

func checkFile(path string, create bool) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a folder, not a database file; name a file with --database", path)
	case err == nil && info.Mode().IsRegular():
		if err := checkFileSystem(filepath.Dir(path)); err != nil {
			return err
		}
		return checkOwner(path)
	case err == nil:
		return nil
	case !errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("database file: %w; name another place with --database", err)
	case !create:
		return fmt.Errorf("there is no database at %s: load some rows first, or name another with --database", path)
	}
	if err := checkFileSystem(filepath.Dir(path)); err != nil {
		return err
	}
	probe, err := os.CreateTemp(filepath.Dir(path), ".windrow-probe-*")
	if err != nil {
		return fmt.Errorf("the folder of the database file can't be written to: %w; name another place with --database", err)
	}
	probe.Close()
	return os.Remove(probe.Name())
}

// explainSQLite adds what to do about the errors that come of where a file lies.
func explainSQLite(path string, err error) error {
	var code interface{ Code() int }
	if !errors.As(err, &code) {
		return err
	}
	switch code.Code() & 0xff {
	case 8, 14: // SQLITE_READONLY, SQLITE_CANTOPEN
		return fmt.Errorf("%w; the file and its folder must be writable: name another place with --database", err)
	case 10, 15, 22: // SQLITE_IOERR, SQLITE_PROTOCOL, SQLITE_NOLFS
		return fmt.Errorf("%w; a network file system can't lock or map an SQLite file: put it on a local disk with --database", err)
	case 26: // SQLITE_NOTADB
		return fmt.Errorf("%s is not an SQLite database: name another file with --database", path)
	}
	return err
}
