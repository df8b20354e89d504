package database_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/model"
)

// coded is an error as SQLite's driver makes them.
type coded int

func (c coded) Error() string { return fmt.Sprintf("code %d", int(c)) }
func (c coded) Code() int     { return int(c) }

func TestTranslate(t *testing.T) {
	state := func(code string) error { return fmt.Errorf("some statement: %w", &pgconn.PgError{Code: code}) }
	none := errors.New("no meaning")
	tests := map[string]struct {
		give error
		want error
	}{
		"connection failure":          {state("08006"), model.ErrUnavailable},
		"protocol violation":          {state("08P01"), model.ErrUnavailable},
		"disk full":                   {state("53100"), model.ErrUnavailable},
		"out of memory":               {state("53200"), model.ErrUnavailable},
		"too many connections":        {state("53300"), model.ErrUnavailable},
		"server shuts down":           {state("57P01"), model.ErrUnavailable},
		"server crashed":              {state("57P02"), model.ErrUnavailable},
		"server starts up":            {state("57P03"), model.ErrUnavailable},
		"idle session timeout":        {state("57P05"), model.ErrUnavailable},
		"idle in transaction timeout": {state("25P03"), model.ErrUnavailable},
		"read only after a failover":  {state("25006"), model.ErrUnavailable},
		"bad JSON":                    {state("22P02"), model.ErrRefused},
		"NUL in a text":               {state("22021"), model.ErrRefused},
		"\\u0000 in JSON":             {state("22P05"), model.ErrRefused},
		"number too big":              {state("22003"), model.ErrRefused},
		"nested too deep":             {state("54001"), model.ErrRefused},
		"value too long":              {state("54000"), model.ErrRefused},
		"no such table":               {state("42P01"), model.ErrSchema},
		"no such schema":              {state("3F000"), model.ErrSchema},
		"no such column":              {state("42703"), model.ErrSchema},
		"may not":                     {state("42501"), none},
		"constraint":                  {state("23505"), none},
		"statement timeout":           {state("57014"), model.ErrUnavailable},
		"wrong password":              {state("28P01"), none},

		"SQLite busy":             {coded(5), model.ErrUnavailable},
		"SQLite locked":           {coded(6 | 1<<8), model.ErrUnavailable},
		"SQLite I/O error":        {coded(10 | 3<<8), model.ErrUnavailable},
		"SQLite disk full":        {coded(13), model.ErrUnavailable},
		"SQLite value too big":    {fmt.Errorf("row 3: %w", coded(18)), model.ErrRefused},
		"SQLite type mismatch":    {coded(20), model.ErrRefused},
		"SQLite constraint":       {coded(19), none},
		"SQLite not a database":   {coded(26), none},
		"SQLite read only":        {coded(8), none},
		"end of the connection":   {io.EOF, model.ErrUnavailable},
		"cut in the middle":       {fmt.Errorf("commit: %w", io.ErrUnexpectedEOF), model.ErrUnavailable},
		"bad connection":          {driver.ErrBadConn, model.ErrUnavailable},
		"closed connection":       {net.ErrClosed, model.ErrUnavailable},
		"pgx's closed one":        {errors.New("begin: conn closed"), model.ErrUnavailable},
		"connection reset":        {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, model.ErrUnavailable},
		"cancelled by us":         {context.Canceled, none},
		"our own deadline":        {context.DeadlineExceeded, none},
		"something else":          {errors.New("something else"), none},
		"already meant":           {fmt.Errorf("x: %w", model.ErrSchema), model.ErrSchema},
		"already meant otherwise": {fmt.Errorf("%w: %w", model.ErrRefused, state("08006")), model.ErrRefused},
	}
	meanings := []error{model.ErrUnavailable, model.ErrRefused, model.ErrSchema}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := database.Translate(tt.give)
			if !errors.Is(got, tt.give) {
				t.Errorf("%v no longer wraps its cause", got)
			}
			for _, meaning := range meanings {
				if errors.Is(got, meaning) != (meaning == tt.want) {
					t.Errorf("is %q: %v", meaning, errors.Is(got, meaning))
				}
			}
		})
	}
	if database.Translate(nil) != nil {
		t.Error("nil was given a meaning")
	}
}

// What the driver shows of a full server does not say which setting to raise.
func TestAFullServersSettingIsNamed(t *testing.T) {
	tests := map[string]struct{ hint, want string }{
		"predicate locks":     {"You might need to increase max_pred_locks_per_transaction.", "raise max_pred_locks_per_transaction in"},
		"quoted, as by 17":    {`You might need to increase "max_locks_per_transaction".`, "raise max_locks_per_transaction in"},
		"conflicts":           {"You might need to run fewer transactions at a time or increase max_connections.", "raise max_connections in"},
		"the machine's":       {"", "more memory"},
		"and what else helps": {"", "a smaller --max-batch"},
	}
	for name, tt := range tests {
		got := database.Translate(fmt.Errorf("claim: %w", &pgconn.PgError{Code: "53200", Hint: tt.hint}))
		if !errors.Is(got, model.ErrUnavailable) || !strings.Contains(got.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, got, tt.want)
		}
	}
}
