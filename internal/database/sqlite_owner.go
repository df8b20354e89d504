package database

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"

	"github.com/libtnb/sqlite"
)

// ErrForeign says that a file is some other program's database.
var ErrForeign = errors.New("some other program's database")

// ours are tables of which a job's file has all; versionTable alone is in a file
// whose other tables are just being made, or were taken back.
var ours = []string{"datasets", "loads", "job", versionTable}

const versionTable = "schema_version"

// checkOwner refuses a file that holds other tables than windrow's. It looks without
// leaving a trace: opening the file for work would switch it to WAL.
func checkOwner(path string) error {
	names, err := tablesOf(path, "ro")
	if err != nil { // a journal that a crash has left can't be read without taking it back
		names, err = tablesOf(path, "rw")
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", path, explainSQLite(path, err))
	}
	isOurs := !slices.ContainsFunc(ours, func(name string) bool { return !slices.Contains(names, name) })
	isEmpty := !slices.ContainsFunc(names, func(name string) bool { return name != versionTable })
	if isOurs || isEmpty {
		return nil
	}
	return fmt.Errorf("%s is %w: name another with --database", path, ErrForeign)
}

// tablesOf lists the tables and views of a file.
func tablesOf(path, mode string) ([]string, error) {
	db, err := sql.Open(sqlite.DriverName, sqliteURL(path, url.Values{"mode": {mode}, "_pragma": {"busy_timeout(10000)"}}))
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.Query(`SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\_%' ESCAPE '\'`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

func sqliteURL(path string, parameters url.Values) string {
	return "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() + "?" + parameters.Encode()
}
