package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/internal/txn"
)

// lookAtPooler finds out whether a pooler stands in between, which mode it is in,
// and whether statements can be prepared through it as the address asks.
func lookAtPooler(ctx context.Context, p *patient) ([]Finding, error) {
	direct, err := isDirect(ctx, p)
	if err != nil {
		return nil, err
	}
	if direct {
		return fine("none: the connection leads to the server itself"), nil
	}
	p.pooled = true
	shared, err := sharesSessions(ctx, p.db)
	if err != nil {
		return nil, err
	}
	if !shared {
		return fine("there is one, and it keeps sessions together"), nil
	}
	findings := []Finding{{Severity: Note, What: "connections go through a pooler in transaction mode",
		Why: "LISTEN does not hold there: workers meet added rows at their next look, a minute later at most, instead of at once. " +
			"Nor does anything else of a session that handlers may count on: SET, prepared statements, temporary tables, session locks",
		Cure: "# nothing need be done; to be woken at once, name the server's own port in --database"}}
	broken, err := losesPrepared(ctx, p.address)
	if err != nil {
		return nil, err
	}
	if broken != nil {
		findings = append(findings, Finding{Severity: Error, What: "prepared statements get lost in the pooler: " + p.opts.Words(broken),
			Why: "the driver prepares windrow's statements, and meets other server connections that do not know them: all commands fail now and then",
			Cure: "# add default_query_exec_mode=exec to the address: postgres://…/name?default_query_exec_mode=exec\n" +
				"# or set max_prepared_statements = 200 in pgbouncer.ini (1.21 or newer), and reload it"})
	}
	return findings, nil
}

// isDirect compares the process id that the connection was told at its start with
// the one that answers: a pooler makes its own up.
func isDirect(ctx context.Context, p *patient) (direct bool, err error) {
	err = txn.Pipeline(ctx, p.db, pgx.ReadCommitted, readOnly, guard, txn.Statement{
		SQL: `SELECT pg_backend_pid()`,
		Rows: func(rows pgx.Rows) error {
			told := rows.Conn().PgConn().PID()
			pids, err := pgx.CollectRows(rows, pgx.RowTo[int32])
			direct = len(pids) == 1 && uint32(pids[0]) == told
			return err
		},
	})
	return direct, err
}

// sharesSessions tells whether two connections, both open, can be answered by the
// same session of the server, or one of them by two.
func sharesSessions(ctx context.Context, db *gorm.DB) (shared bool, err error) {
	err = together(ctx, db, func(one, other *gorm.DB) error {
		for range 3 {
			var first, second, third int64
			if err := backend(ctx, one, &first, nil); err != nil {
				return err
			}
			err := backend(ctx, other, &second, func() error {
				if first == second {
					return nil
				}
				return backend(ctx, one, &third, nil)
			})
			if err != nil {
				return err
			}
			if first == second || first != third {
				shared = true
				return nil
			}
		}
		return nil
	})
	return shared, err
}

// together lends fn two connections of the pool.
func together(ctx context.Context, db *gorm.DB, fn func(one, other *gorm.DB) error) error {
	db = db.WithContext(ctx)
	return db.Connection(func(one *gorm.DB) error {
		return db.Connection(func(other *gorm.DB) error { return fn(one, other) })
	})
}

// backend asks which process of the server answers, and runs more, if not nil, while
// the transaction is open.
func backend(ctx context.Context, db *gorm.DB, pid *int64, more func() error) error {
	return txn.Snapshot(ctx, db, func(tx *gorm.DB) error {
		err := tx.Raw(`SELECT pg_backend_pid() + CAST(? AS integer)`, 0).Scan(pid).Error
		if err != nil || more == nil {
			return err
		}
		return more()
	})
}

// losesPrepared runs a statement as the address asks, on connections that share the
// server's. broken is what went wrong by that.
func losesPrepared(ctx context.Context, address string) (broken, err error) {
	db, err := database.OpenPostgres(address, nil)
	if err != nil {
		return nil, err
	}
	defer database.Close(db)
	// With one server connection for all, the second waits for the first in vain.
	limited, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err = sharesSessions(limited, db)
	var server *pgconn.PgError
	switch {
	case errors.As(err, &server) && (server.Code == "26000" || server.Code == "42P05" || server.Code == "08P01"):
		return fmt.Errorf("%s (%s)", server.Message, server.Code), nil
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return nil, nil
	}
	return nil, err
}
