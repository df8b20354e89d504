package checkout

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/internal/txn"
	"github.com/windrow-go/windrow/migrations"
)

// SQLite is a job in an SQLite file. Its transactions are serializable by
// nature, one writer at a time: they take the write lock when they begin, and a
// lost race shows as BUSY there. Several processes may work on one file. Its
// methods may be called from several goroutines at once.
type SQLite struct {
	db       *gorm.DB
	path     string
	opts     Options
	job      string // the job's uuid
	walker   *walker
	registry *registry

	reading sync.Mutex
	readDB  *gorm.DB // see reader
}

// OpenSQLite opens the job in the file at path. A missing file is made if create
// is set, and an older one brought up to date. Some other program's database is
// refused, and left as it was.
func OpenSQLite(ctx context.Context, path string, create bool, opts Options) (*SQLite, error) {
	db, err := database.OpenSQLite(path, create, opts.Logger)
	if err != nil {
		return nil, err
	}
	known := &registry{}
	s := &SQLite{db: db, path: path, opts: known.counting(opts.withDefaults()), registry: known}
	s.walker = newWalker(s, s.opts.policy("check out"))
	if err := s.open(ctx, create); err != nil {
		database.Close(db)
		return nil, err
	}
	return s, nil
}

func (s *SQLite) open(ctx context.Context, create bool) error {
	migrator, err := migrations.SQLite(s.db, s.path)
	if err != nil {
		return err
	}
	version, err := migrator.Version(ctx)
	if err == nil && version == 0 && !create {
		return fmt.Errorf("%s holds no windrow tables: load some rows first, or name another database with --database", s.path)
	}
	if err == nil && version < migrations.Needed {
		_, err = migrator.Up(ctx)
	}
	if err != nil {
		return explain("open "+s.path, err)
	}
	s.job, err = s.Note(ctx, "uuid")
	return err
}

// Close closes the file.
func (s *SQLite) Close() error {
	err := database.Close(s.db)
	if s.readDB != nil {
		err = errors.Join(err, database.Close(s.readDB))
	}
	return err
}

// nowSQL is the database's clock in microseconds; SQLite's own has milliseconds.
// Within one statement it stands still.
const nowSQL = `(CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000)`

// instant converts the file's microseconds.
func instant(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// write runs a transaction that holds the write lock from its beginning.
func (s *SQLite) write(ctx context.Context, op string, fn func(tx *gorm.DB) error) error {
	err := txn.Retry(ctx, s.opts.policy(op), func() error {
		return txn.Immediate(ctx, s.db, fn)
	})
	return explain(op, err)
}

// read runs a transaction that sees the file as it is when it begins.
func (s *SQLite) read(ctx context.Context, op string, fn func(tx *gorm.DB) error) error {
	err := txn.Retry(ctx, s.opts.policy(op), func() error {
		return txn.Deferred(ctx, s.db, fn)
	})
	return explain(op, err)
}

// Ping tells whether the file can be read.
func (s *SQLite) Ping(ctx context.Context) error { return database.Ping(ctx, s.db) }

// Note returns what SetNote has stored under name for the job as a whole, or "".
func (s *SQLite) Note(ctx context.Context, name string) (string, error) {
	var value string
	err := s.read(ctx, "read the job", func(tx *gorm.DB) error {
		return tx.Raw(`SELECT value FROM job WHERE name = ?`, name).Scan(&value).Error
	})
	return value, err
}

// SetNote stores value under name for the job as a whole.
func (s *SQLite) SetNote(ctx context.Context, name, value string) error {
	return s.write(ctx, "note about the job", func(tx *gorm.DB) error {
		return tx.Exec(`INSERT INTO job (name, value) VALUES (?, ?)
			ON CONFLICT (name) DO UPDATE SET value = excluded.value`, name, value).Error
	})
}

// PutBackHeld makes every row that is held available at once, whatever its
// lease, and returns how many there were. It is for a lone process that has the
// file to itself, and so knows that whoever held them is gone; the next check-out
// counts the loss.
func (s *SQLite) PutBackHeld(ctx context.Context) (int64, error) {
	var n int64
	err := s.write(ctx, "put held rows back", func(tx *gorm.DB) error {
		res := tx.Exec(`UPDATE datasets SET available_at = 0 WHERE NOT is_processed AND checked_out_by IS NOT NULL`)
		n = res.RowsAffected
		return res.Error
	})
	return n, err
}
