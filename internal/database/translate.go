package database

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/windrow-go/windrow/model"
)

// Translate gives a driver's error its meaning: it wraps what says that the
// server is out of reach in model.ErrUnavailable, what it refuses for its values
// in model.ErrRefused, and what says that windrow's tables are not there in
// model.ErrSchema. Other errors, and nil, come back as they are.
func Translate(err error) error {
	if err == nil || errors.Is(err, model.ErrUnavailable) || errors.Is(err, model.ErrRefused) || errors.Is(err, model.ErrSchema) {
		return err
	}
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return translatePostgres(server, err)
	}
	var code interface{ Code() int }
	if errors.As(err, &code) {
		return translateSQLite(code.Code(), err)
	}
	if lostConnection(err) {
		return fmt.Errorf("%w: %w", model.ErrUnavailable, err)
	}
	return err
}

// translatePostgres goes by SQLSTATE: 08 connection, 53 resources, 57P0x
// shutdown and crash, 57014 a statement timeout, 25006 read-only after a failover,
// 25P03 and 57P05 idle timeouts; 22 data and 54 limits; 3F000, 42P01 and 42703 missing objects.
func translatePostgres(server *pgconn.PgError, err error) error {
	state := server.Code
	switch {
	case state == outOfMemory:
		return fmt.Errorf("%w: %w; %s", model.ErrUnavailable, err, roomFor(server.Hint))
	case strings.HasPrefix(state, "08"), strings.HasPrefix(state, "53"), strings.HasPrefix(state, "57P0"),
		state == "25006", state == "25P03", state == "57014":
		return fmt.Errorf("%w: %w", model.ErrUnavailable, err)
	case strings.HasPrefix(state, "22"), strings.HasPrefix(state, "54"):
		return fmt.Errorf("%w: %w", model.ErrRefused, err)
	case state == "42P01", state == "3F000", state == "42703":
		return fmt.Errorf("%w: %w", model.ErrSchema, err)
	}
	return err
}

// outOfMemory is also the state of a server one of whose tables of locks is full.
const outOfMemory = "53200"

// roomFor says what to do about a full server: its hint names the setting, which
// the driver's text leaves out. Only the last is about the machine's memory.
func roomFor(hint string) string {
	const orLess = ", or let windrow ask for less: a smaller --max-batch, fewer workers"
	for _, setting := range []string{"max_pred_locks_per_transaction", "max_locks_per_transaction", "max_connections"} {
		if strings.Contains(hint, setting) {
			return "raise " + setting + " in the server's configuration" + orLess
		}
	}
	return "give the server more memory (if it is the shared memory that is full: raise max_pred_locks_per_transaction)" + orLess
}

// translateSQLite goes by primary result code. A full disk or a busy file may
// pass; too big a value (18) or a wrong type (20) will not.
func translateSQLite(code int, err error) error {
	switch code & 0xff {
	case 5, 6, 10, 13: // BUSY, LOCKED, IOERR, FULL
		return fmt.Errorf("%w: %w", model.ErrUnavailable, err)
	case 18, 20: // TOOBIG, MISMATCH
		return fmt.Errorf("%w: %w", model.ErrRefused, err)
	}
	return err
}

func lostConnection(err error) bool {
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		return !errors.Is(err, context.Canceled)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var network net.Error
	return errors.As(err, &network) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, net.ErrClosed) ||
		strings.Contains(err.Error(), "conn closed")
}
