package migrations

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/gofrs/flock"
	"github.com/pressly/goose/v3"
	"gorm.io/gorm"
)

// LockSuffix is appended to a database file's name for the file whose lock says
// who works on it: a migration takes it for itself, workers share it, and a lone
// `windrow run` keeps it to itself.
const LockSuffix = ".lock"

// SQLite returns the migrator of the job in the file at path, open as db.
func SQLite(db *gorm.DB, path string) (*Migrator, error) {
	source, err := render("sqlite", "")
	if err != nil {
		return nil, err
	}
	pool, err := db.DB()
	if err != nil {
		return nil, err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, pool, source,
		goose.WithTableName(versionTable),
		goose.WithDisableGlobalRegistry(true),
		goose.WithLocker(&fileLock{file: flock.New(path + LockSuffix)}))
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	return &Migrator{db: db, provider: provider}, nil
}

func (m *Migrator) sqliteVersion(ctx context.Context) (int64, error) {
	var tables int64
	err := m.db.WithContext(ctx).Raw(
		`SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?`, versionTable).Scan(&tables).Error
	if err != nil || tables == 0 {
		return 0, err
	}
	var version int64
	err = m.db.WithContext(ctx).Raw(`SELECT coalesce(max(version_id), 0) FROM ` + versionTable).Scan(&version).Error
	return version, err
}

// fileLock lets one process at a time migrate an SQLite file. The lock goes with
// the process, and the file stays: removing it would let two hold "the" lock.
type fileLock struct {
	file *flock.Flock
}

func (l *fileLock) Lock(ctx context.Context, _ *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if _, err := l.file.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		return fmt.Errorf("wait for %s, which another windrow holds: %w", l.file.Path(), err)
	}
	return nil
}

func (l *fileLock) Unlock(context.Context, *sql.DB) error {
	return l.file.Unlock()
}
