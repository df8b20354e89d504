package doctor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/internal/txn"
	"github.com/windrow-go/windrow/migrations"
)

// file is an SQLite file with a job.
type file struct {
	path   string
	db     *gorm.DB // nil: it can't be opened
	opts   Options
	still  bool // nobody has it open: there is no log beside it
	header header
	log    walIndex
	locks  locks
	ours   bool // it has windrow's tables
}

// header is what stands at the beginning of the file.
type header struct {
	pageSize int64
	wal      bool
}

// SQLite looks at the job in the file at path, which is neither changed nor made.
// The findings come worst first.
func SQLite(ctx context.Context, path string, opts Options) []Finding {
	opts = opts.withDefaults()
	before := stampOf(path)
	findings := lookAtFile(ctx, path, opts, before.still())
	if before.still() && stampOf(path) != before { // somebody has written meanwhile: read it with them
		findings = lookAtFile(ctx, path, opts, false)
	}
	return findings
}

func lookAtFile(ctx context.Context, path string, opts Options, still bool) []Finding {
	f := &file{path: path, opts: opts, still: still}
	defer func() {
		if f.db != nil {
			database.Close(f.db)
		}
	}()
	return examine(ctx, f, sqliteChecks, unread)
}

var sqliteChecks = []check[*file]{
	{name: "file", look: lookForFile},
	{name: "file system", look: lookAtFileSystem, applies: opened},
	{name: "free space", look: lookAtFreeSpace, applies: opened},
	{name: "schema", look: lookAtVersion, applies: opened},
	{name: "journal", look: lookAtJournal, applies: opened},
	{name: "locks", look: lookAtFileLocks, applies: opened},
	{name: "log", look: lookAtLog, applies: opened},
	{name: "indexes", look: lookAtFileIndexes, applies: isOurs},
	{name: "empty pages", look: lookAtEmptyPages, applies: opened},
	{name: "integrity", look: lookAtIntegrity, applies: opened},
}

func opened(f *file) bool { return f.db != nil }
func isOurs(f *file) bool { return f.ours }

// unread words what kept a check of a file from being made.
func unread(f *file, err error) (Finding, bool) {
	return Finding{Severity: Note, What: "could not be looked at: " + f.opts.Words(err), Why: "what is wrong there, if anything, is not known"}, false
}

// stamp tells whether a file has changed.
type stamp struct {
	size     int64
	modified time.Time
	log      bool // there is a log or a journal beside it
}

func (s stamp) still() bool { return !s.log }

func stampOf(path string) stamp {
	var s stamp
	if info, err := os.Stat(path); err == nil {
		s.size, s.modified = info.Size(), info.ModTime()
	}
	for _, suffix := range []string{"-wal", "-journal"} {
		if _, err := os.Stat(path + suffix); err == nil {
			s.log = true
		}
	}
	return s
}

// lookForFile opens the file, if there is one that can be.
func lookForFile(_ context.Context, f *file) ([]Finding, error) {
	const why = "there is nothing to work on"
	info, err := os.Stat(f.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return []Finding{{Severity: Error, What: "there is no database at " + f.path, Why: why,
			Cure: "windrow load FILE  # makes one; or name another with --database"}}, nil
	case err != nil:
		return []Finding{{Severity: Error, What: "the database file can't be reached: " + err.Error(), Why: why,
			Cure: "ls -ld " + shellQuoted(filepath.Dir(f.path)) + "  # see that this user may enter the folder"}}, nil
	case info.IsDir():
		return []Finding{{Severity: Error, What: f.path + " is a folder, not a database file", Why: why, Cure: "# name a file with --database"}}, nil
	case info.Size() == 0:
		return []Finding{{Severity: Error, What: f.path + " is empty", Why: why, Cure: "windrow load FILE  # makes the tables; or name another with --database"}}, nil
	}
	if f.header, err = readHeader(f.path); err != nil {
		return []Finding{{Severity: Error, What: err.Error(), Why: why, Cure: "# name another file with --database"}}, nil
	}
	// Before SQLite has it open: to close it would drop this process's locks on it.
	if f.log, err = readWALIndex(f.path + "-shm"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	db, err := database.LookAtSQLite(f.path, f.still, nil)
	if err != nil {
		return []Finding{{Severity: Error, What: f.opts.Words(err), Why: why, Cure: "# name another file with --database, or mend its folder's permissions"}}, nil
	}
	f.db = db
	for _, path := range []string{f.path, filepath.Dir(f.path)} {
		if !mayWrite(path) {
			return []Finding{{Severity: Error, What: "this user may not write to " + path, Why: "workers write into the file, and make others beside it",
				Cure: "sudo chown \"$USER\" " + shellQuoted(path)}}, nil
		}
	}
	return fine(fmt.Sprintf("%s, %s", f.path, size(info.Size()))), nil
}

// readHeader reads the page size and the kind of journal out of the file's first
// bytes.
func readHeader(path string) (header, error) {
	file, err := os.Open(path)
	if err != nil {
		return header{}, err
	}
	defer file.Close()
	first := make([]byte, 100)
	if _, err := io.ReadFull(file, first); err != nil || !strings.HasPrefix(string(first), "SQLite format 3\x00") {
		return header{}, fmt.Errorf("%s is not an SQLite database", path)
	}
	h := header{pageSize: int64(binary.BigEndian.Uint16(first[16:])), wal: first[18] == 2}
	if h.pageSize == 1 {
		h.pageSize = 65536
	}
	return h, nil
}

func lookAtFileSystem(_ context.Context, f *file) ([]Finding, error) {
	if err := database.CheckFileSystem(filepath.Dir(f.path)); err != nil {
		return []Finding{{Severity: Error, What: err.Error(), Why: "its locks and its shared memory can't be relied on: two processes may damage the file",
			Cure: fmt.Sprintf("cp %s /var/tmp/  # to a local disk, while nothing runs; then name it with --database", shellQuoted(f.path))}}, nil
	}
	return fine("no network file system"), nil
}

func lookAtFreeSpace(_ context.Context, f *file) ([]Finding, error) {
	folder := filepath.Dir(f.path)
	free, total, err := freeSpace(folder)
	if errors.Is(err, errNoStatfs) {
		return fine(err.Error()), nil
	}
	if err != nil {
		return nil, err
	}
	if severity := tightness(free, total, 1<<30); severity != OK {
		return []Finding{{Severity: severity, What: fmt.Sprintf("only %s of %s are free on the disk of %s", size(free), size(total), f.path),
			Why:  "on a full disk nothing can be stored: workers wait until there is room, and keep what they have finished",
			Cure: "df -h " + shellQuoted(folder) + "  # then make room, or move the file to a larger disk while nothing runs"}}, nil
	}
	return fine(fmt.Sprintf("%s of %s", size(free), size(total))), nil
}

// read runs queries in one read-only transaction.
func (f *file) read(ctx context.Context, fn func(tx *gorm.DB) error) error {
	return txn.Deferred(ctx, f.db, fn)
}

func lookAtVersion(ctx context.Context, f *file) ([]Finding, error) {
	migrator, err := migrations.SQLite(f.db, f.path)
	if err != nil {
		return nil, err
	}
	version, err := migrator.Version(ctx)
	switch {
	case err != nil:
		return nil, err
	case version == 0:
		return f.withoutTables(ctx)
	}
	f.ours = true
	switch {
	case version < migrations.Needed:
		return []Finding{{Severity: Note, What: fmt.Sprintf("the tables are of version %d, this program needs %d", version, migrations.Needed),
			Why: "they are brought up to date when the file is next opened for work", Cure: "windrow migrate up --database " + shellQuoted(f.path)}}, nil
	case version > migrations.Needed:
		return []Finding{{Severity: Note, What: fmt.Sprintf("the tables are of version %d, this program knows %d", version, migrations.Needed),
			Why: "a newer windrow made them; this one works with them, and knows nothing of what is new", Cure: "# use the newer windrow everywhere"}}, nil
	}
	return fine(fmt.Sprintf("version %d", version)), nil
}

// withoutTables tells a file that is still empty from some other program's.
func (f *file) withoutTables(ctx context.Context) ([]Finding, error) {
	var others []string
	err := f.read(ctx, func(tx *gorm.DB) error {
		return tx.Raw(`SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name LIMIT 5`).Scan(&others).Error
	})
	if err != nil {
		return nil, err
	}
	if len(others) > 0 {
		return []Finding{{Severity: Error, What: fmt.Sprintf("%s is some other program's database, with tables such as %s", f.path, strings.Join(others, ", ")),
			Why: "windrow does not touch it", Cure: "# name another file with --database"}}, nil
	}
	return []Finding{{Severity: Error, What: f.path + " holds no windrow tables", Why: "there is nothing to work on",
		Cure: "windrow load FILE  # makes them; or name another file with --database"}}, nil
}

func lookAtJournal(_ context.Context, f *file) ([]Finding, error) {
	var findings []Finding
	if !f.header.wal {
		findings = append(findings, Finding{Severity: Note, What: "the file is not in WAL mode now",
			Why:  "readers and a writer keep each other waiting; the next windrow that works on it turns WAL on",
			Cure: fmt.Sprintf("sqlite3 %s 'PRAGMA journal_mode = WAL'", shellQuoted(f.path))})
	}
	if f.header.pageSize < 4096 {
		findings = append(findings, Finding{Severity: Note, What: fmt.Sprintf("pages have %d bytes only", f.header.pageSize),
			Why:  "every row takes more reads and writes than with pages of 4,096",
			Cure: fmt.Sprintf("sqlite3 %s 'PRAGMA journal_mode = DELETE; PRAGMA page_size = 4096; VACUUM; PRAGMA journal_mode = WAL'  # while nothing runs", shellQuoted(f.path))})
	}
	return orFine(findings, fmt.Sprintf("WAL, pages of %d bytes; windrow writes with synchronous=FULL", f.header.pageSize)), nil
}

// shellQuoted quotes s for a shell where that is needed.
func shellQuoted(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+:=@%,"
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
