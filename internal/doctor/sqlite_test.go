package doctor_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/libtnb/sqlite"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/doctor"
)

// newFile is a job in an SQLite file, which nobody has open.
func newFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "job with space.db")
	s, err := checkout.OpenSQLite(t.Context(), path, true, checkout.Options{})
	check(t, err)
	load, err := s.BeginLoad(t.Context(), "test", 0)
	check(t, err)
	rows := make([]checkout.NewRow, 100)
	for i := range rows {
		rows[i].Data = json.RawMessage(fmt.Sprintf(`{"n": %d}`, i))
	}
	check(t, s.Append(t.Context(), &load, checkout.Chunk{Rows: rows, Records: 100, Last: true}))
	check(t, s.Close())
	return path
}

// in runs statements on the file as some other program would, and closes it.
func in(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open(sqlite.DriverName, "file:"+path)
	check(t, err)
	defer func() { check(t, db.Close()) }()
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		if _, err := db.ExecContext(context.WithoutCancel(t.Context()), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func lookAt(t *testing.T, path string) report {
	t.Helper()
	return report{t, doctor.SQLite(t.Context(), path, doctor.Options{})}
}

func filesBeside(t *testing.T, path string) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	check(t, err)
	var list []string
	for _, e := range entries {
		info, err := e.Info()
		check(t, err)
		list = append(list, fmt.Sprint(e.Name(), info.Size(), info.ModTime()))
	}
	return strings.Join(list, "; ")
}

func TestAFileAsMadeIsFineAndLeftAsItIs(t *testing.T) {
	path := newFile(t)
	before := filesBeside(t, path)
	r := lookAt(t, path)
	for _, f := range r.findings {
		if f.Severity != doctor.OK && f.Check != "free space" {
			t.Errorf("%s %s: %s", f.Severity, f.Check, f.What)
		}
	}
	r.fine("file", "schema", "journal", "locks", "log", "indexes", "empty pages", "integrity")
	if after := filesBeside(t, path); after != before {
		t.Errorf("the folder had %s, and has %s", before, after)
	}
}

func TestAFileThatIsNoJobIsAFinding(t *testing.T) {
	folder := t.TempDir()
	name := func(n string) string { return filepath.Join(folder, n) }
	check(t, os.WriteFile(name("text"), []byte(strings.Repeat("no database\n", 100)), 0o644))
	check(t, os.WriteFile(name("empty"), nil, 0o644))
	in(t, name("foreign"), `CREATE TABLE orders (n)`)
	in(t, name("bare"), `CREATE TABLE x (n)`, `DROP TABLE x`)
	for path, says := range map[string]string{
		name("none"): "there is no database at", folder: "is a folder", name("text"): "not an SQLite database",
		name("empty"): "is empty", name("none/at/all"): "there is no database at",
	} {
		lookAt(t, path).wants("file", doctor.Error, says)
	}
	lookAt(t, name("foreign")).wants("schema", doctor.Error, "some other program's", "orders")
	lookAt(t, name("bare")).wants("schema", doctor.Error, "no windrow tables", "windrow load")
	if _, err := os.Stat(name("none")); err == nil {
		t.Error("a file was made")
	}
}

func TestAFilesIndexesAndJournalAreCompared(t *testing.T) {
	path := newFile(t)
	in(t, path, `DROP INDEX unprocessed_datasets_idx`, `DROP INDEX failed_datasets_idx`,
		`CREATE INDEX failed_datasets_idx ON datasets (id)`, `CREATE INDEX mine ON datasets (key)`, `PRAGMA journal_mode = DELETE`)
	r := lookAt(t, path)
	missing := r.wants("indexes", doctor.Error, "unprocessed_datasets_idx is missing", "sqlite3 '"+path+"' 'CREATE INDEX")
	other := r.wants("indexes", doctor.Warning, "failed_datasets_idx is not as the migrations make it", "DROP INDEX failed_datasets_idx;")
	further := r.wants("indexes", doctor.Note, "mine")
	journal := r.wants("journal", doctor.Note, "not in WAL mode")
	for _, f := range []doctor.Finding{missing, other, further, journal} {
		statement := f.Cure[strings.LastIndex(f.Cure[:strings.LastIndex(f.Cure, "'")], "'")+1 : strings.LastIndex(f.Cure, "'")]
		in(t, path, statement)
	}
	lookAt(t, path).fine("indexes", "journal")
}

func TestWhoHoldsTheFileIsNamed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the system does not list locks")
	}
	path := newFile(t)
	pid, end := holder(t, path, "BEGIN IMMEDIATE")
	lookAt(t, path).wants("locks", doctor.Warning, fmt.Sprintf("process %d (", pid), fmt.Sprintf("kill %d", pid))
	end()
	lookAt(t, path).fine("locks")

	pid, end = holder(t, path, "BEGIN; SELECT count(*) FROM datasets")
	lookAt(t, path).fine("locks", "log") // one that only reads is in nobody's way
	in(t, path, `PRAGMA journal_size_limit = -1`,
		`CREATE TABLE filler (b)`,
		`INSERT INTO filler SELECT randomblob(100000) FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60) SELECT i FROM n)`)
	long := report{t, doctor.SQLite(t.Context(), path, doctor.LongLog(4<<20))}
	long.wants("log", doctor.Warning, "5.8 MiB", fmt.Sprintf("process %d (", pid))
	lookAt(t, path).fine("log")
	end()
}

func TestADamagedFileIsAnError(t *testing.T) {
	path := newFile(t)
	in(t, path, `INSERT INTO datasets (data) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) SELECT '{"n": 1, "text": "some more of it"}' FROM n`)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	check(t, err)
	info, err := file.Stat()
	check(t, err)
	for at := info.Size() / 2 / 4096 * 4096; at < info.Size()-4096; at += 2 * 4096 {
		_, err = file.WriteAt([]byte(strings.Repeat("damage", 200)), at)
		check(t, err)
	}
	check(t, file.Close())
	lookAt(t, path).wants("integrity", doctor.Error, "damaged", ".recover")
}

func TestEmptyPagesAreToldOf(t *testing.T) {
	path := newFile(t)
	in(t, path, `CREATE TABLE filler (b)`,
		`INSERT INTO filler SELECT zeroblob(100000) FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 800) SELECT i FROM n)`,
		`DROP TABLE filler`)
	lookAt(t, path).wants("empty pages", doctor.Note, "MiB are empty pages", "VACUUM")
	in(t, path, `VACUUM`)
	lookAt(t, path).fine("empty pages")
}
