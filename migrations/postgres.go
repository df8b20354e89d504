package migrations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/internal/txn"
)

// Postgres returns the migrator of the job in schema (DefaultSchema if empty).
func Postgres(db *gorm.DB, schema string) (*Migrator, error) {
	if schema == "" {
		schema = DefaultSchema
	}
	if err := CheckSchemaName(schema); err != nil {
		return nil, err
	}
	locker, err := lock.NewPostgresTableLocker(
		lock.WithTableName(schema+"."+lockTable),
		lock.WithTableLockTimeout(500*time.Millisecond, 600),
		lock.WithTableUnlockTimeout(500*time.Millisecond, 60),
		lock.WithTableRetryPolicy(mayPass),
	)
	if err != nil {
		return nil, fmt.Errorf("migration lock: %w", err)
	}
	source, err := render("postgres", schema)
	if err != nil {
		return nil, err
	}
	pool, err := db.DB()
	if err != nil {
		return nil, err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, pool, source,
		goose.WithTableName(schema+"."+versionTable),
		goose.WithDisableGlobalRegistry(true),
		goose.WithLocker(locker))
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	return &Migrator{db: db, provider: provider, schema: schema}, nil
}

// mayPass tells whether to go on waiting for the lock. That somebody else holds it
// is no error of the server's, and a lost race passes; but a role that may not
// write the lock would wait for minutes in vain.
func mayPass(err error) bool {
	var server *pgconn.PgError
	return !errors.As(err, &server) || txn.ReasonOf(err) != txn.ReasonNone
}

// createSchema makes the job's schema. IF NOT EXISTS asks for the right to
// create schemas even where there is nothing to create, so look first; and two
// that create it at once can still collide, which means that it is there.
func (m *Migrator) createSchema(ctx context.Context) error {
	if m.schema == "" {
		return nil
	}
	var there bool
	err := m.db.WithContext(ctx).Raw(schemaExistsSQL, m.schema).Scan(&there).Error
	if err != nil {
		return fmt.Errorf("look for schema %s: %w", m.schema, database.Translate(err))
	}
	if there {
		return nil
	}
	if err := m.refuseKeyword(ctx); err != nil {
		return err
	}
	err = m.db.WithContext(ctx).Exec(`CREATE SCHEMA IF NOT EXISTS "` + m.schema + `"`).Error
	var server *pgconn.PgError
	if errors.As(err, &server) && (server.Code == "23505" || server.Code == "42P06") {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create schema %s: %w", m.schema, database.Translate(err))
	}
	return nil
}

// refuseKeyword: goose doesn't quote names, and which words are reserved is the
// server's matter.
func (m *Migrator) refuseKeyword(ctx context.Context) error {
	var reserved bool
	err := m.db.WithContext(ctx).Raw(isReservedSQL, m.schema).Scan(&reserved).Error
	if err != nil {
		return fmt.Errorf("look for schema %s: %w", m.schema, database.Translate(err))
	}
	if reserved {
		return fmt.Errorf("schema name %q: SQL reserves this word, choose another", m.schema)
	}
	return nil
}

// isReservedSQL: R is reserved, T is reserved but for functions and types.
const isReservedSQL = `SELECT EXISTS (SELECT 1 FROM pg_get_keywords() WHERE word = ? AND catcode IN ('R', 'T'))`

const schemaExistsSQL = `SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = ?)`

// Version returns the version of the job's tables; 0 means that there are none.
// It only reads.
func (m *Migrator) Version(ctx context.Context) (int64, error) {
	if m.schema == "" {
		return m.sqliteVersion(ctx)
	}
	var there bool
	err := m.db.WithContext(ctx).Raw(tableExistsSQL, m.schema, versionTable).Scan(&there).Error
	if err != nil {
		return 0, fmt.Errorf("look for windrow's tables: %w", database.Translate(err))
	}
	if !there {
		return 0, nil
	}
	var version int64
	err = m.db.WithContext(ctx).Raw(`SELECT coalesce(max(version_id), 0) FROM "` + m.schema + `".` + versionTable).Scan(&version).Error
	if err != nil {
		return 0, fmt.Errorf("read the version of windrow's tables: %w", database.Translate(err))
	}
	return version, nil
}

const tableExistsSQL = `
SELECT EXISTS (
	SELECT 1
	FROM pg_class AS c
	JOIN pg_namespace AS n ON n.oid = c.relnamespace
	WHERE n.nspname = ? AND c.relname = ?
)`
