// Package txn is the one place in windrow that begins transactions. Each
// function states its isolation level, whatever the server's default, and
// refuses to run inside an open transaction: gorm would turn it into a savepoint
// and silently drop the isolation level.
//
// [Retry] wraps what must be done again from the start when the database says
// that it lost a race: every try begins a new transaction, commits inside the
// try, and reads everything anew. The function given may therefore run many
// times: it assigns its results once, at its end, and touches nothing else.
package txn

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"
)

// Serializable runs fn in a SERIALIZABLE transaction.
func Serializable(ctx context.Context, db *gorm.DB, fn func(tx *gorm.DB) error) error {
	return run(ctx, db, &sql.TxOptions{Isolation: sql.LevelSerializable}, fn)
}

// ReadCommitted runs fn in a READ COMMITTED transaction.
func ReadCommitted(ctx context.Context, db *gorm.DB, fn func(tx *gorm.DB) error) error {
	return run(ctx, db, &sql.TxOptions{Isolation: sql.LevelReadCommitted}, fn)
}

// Snapshot runs fn in a REPEATABLE READ, READ ONLY transaction: all its
// statements see the table as it was at one instant, and take no predicate locks.
func Snapshot(ctx context.Context, db *gorm.DB, fn func(tx *gorm.DB) error) error {
	return run(ctx, db, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}, fn)
}

// Immediate runs fn in an SQLite transaction that takes the write lock at once.
// SQLite's transactions are serializable by nature. The connection must have been
// opened with _txlock=immediate.
func Immediate(ctx context.Context, db *gorm.DB, fn func(tx *gorm.DB) error) error {
	return run(ctx, db, &sql.TxOptions{}, fn)
}

// Deferred runs fn in an SQLite transaction that only reads: it sees the file as
// it was at its first statement and keeps nobody from writing.
func Deferred(ctx context.Context, db *gorm.DB, fn func(tx *gorm.DB) error) error {
	return run(ctx, db, &sql.TxOptions{ReadOnly: true}, fn)
}

// PGX runs fn in a READ COMMITTED transaction on the driver's own connection,
// for what database/sql can't express, such as COPY.
func PGX(ctx context.Context, db *gorm.DB, fn func(tx pgx.Tx) error) error {
	return onConnection(ctx, db, func(c *pgx.Conn) error {
		return pgx.BeginTxFunc(ctx, c, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, fn)
	})
}

func run(ctx context.Context, db *gorm.DB, opts *sql.TxOptions, fn func(tx *gorm.DB) error) (err error) {
	tx := db.WithContext(ctx).Begin(opts)
	if tx.Error != nil {
		return fmt.Errorf("begin: %w", tx.Error)
	}
	finished := false
	defer func() {
		if !finished { // fn failed or panicked; the error that matters is fn's
			tx.Rollback()
		}
	}()
	if err := fn(tx); err != nil {
		return err
	}
	finished = true
	if err := tx.Commit().Error; err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}
