package txn

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"
)

// Statement is one statement of a [Pipeline].
type Statement struct {
	SQL  string
	Args []any // or a pgx.NamedArgs alone
	// Rows reads the answer; nil: it is of no interest. The rows are closed
	// afterwards, and their error is looked at. An error of Rows itself rolls
	// nothing back: COMMIT is on its way by then.
	Rows func(rows pgx.Rows) error
}

// ReadOnly is a level for a [Pipeline] that can't change anything and sees one
// snapshot.
const ReadOnly pgx.TxIsoLevel = "repeatable read read only"

// Pipeline runs statements as one PostgreSQL transaction in a single round trip:
// BEGIN, the statements and COMMIT leave together, and the server carries them out
// one after the other without waiting for this process. A worker that is suspended
// or cut off after that leaves no open transaction behind. The first statement that
// fails rolls everything back; what Rows was given by then is void.
func Pipeline(ctx context.Context, db *gorm.DB, level pgx.TxIsoLevel, statements ...Statement) error {
	return onConnection(ctx, db, func(c *pgx.Conn) error {
		err := send(ctx, c, level, statements)
		if err != nil && !c.IsClosed() && c.PgConn().TxStatus() != 'I' {
			rollBack(c)
		}
		return err
	})
}

func send(ctx context.Context, c *pgx.Conn, level pgx.TxIsoLevel, statements []Statement) error {
	var batch pgx.Batch
	batch.Queue("BEGIN ISOLATION LEVEL " + string(level))
	for _, s := range statements {
		queued := batch.Queue(s.SQL, s.Args...)
		if s.Rows != nil {
			queued.Query(func(rows pgx.Rows) error {
				err := s.Rows(rows)
				rows.Close()
				if failed := rows.Err(); failed != nil {
					return failed
				}
				return err
			})
		}
	}
	batch.Queue("COMMIT").Exec(func(answer pgconn.CommandTag) error {
		if answer.String() == "ROLLBACK" {
			return pgx.ErrTxCommitRollback
		}
		return nil
	})
	return c.SendBatch(ctx, &batch).Close()
}

// rollBack ends a transaction that an error has left open. A connection on which
// that fails is not used again.
func rollBack(c *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if _, err := c.Exec(ctx, "ROLLBACK"); err != nil {
		_ = c.Close(ctx)
	}
}

// onConnection lends fn the driver's own connection out of db's pool.
func onConnection(ctx context.Context, db *gorm.DB, fn func(c *pgx.Conn) error) error {
	pool, err := db.DB()
	if err != nil {
		return fmt.Errorf("connection pool: %w", err)
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close()
	return conn.Raw(func(driverConn any) error { return fn(driverConn.(*stdlib.Conn).Conn()) })
}
