package txn_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/windrow-go/windrow/internal/txn"
)

// coded is an error as SQLite's driver makes them.
type coded int

func (c coded) Error() string { return fmt.Sprintf("code %d", int(c)) }
func (c coded) Code() int     { return int(c) }

func TestReasonOf(t *testing.T) {
	state := func(code string) error { return &pgconn.PgError{Code: code} }
	tests := map[string]struct {
		give error
		want txn.Reason
	}{
		"nil":                               {nil, txn.ReasonNone},
		"serialization failure":             {state("40001"), txn.ReasonSerialization},
		"the same, wrapped twice":           {fmt.Errorf("a: %w", fmt.Errorf("b: %w", state("40001"))), txn.ReasonSerialization},
		"the same, joined":                  {errors.Join(io.EOF, state("40001")), txn.ReasonSerialization},
		"deadlock":                          {state("40P01"), txn.ReasonDeadlock},
		"lock timeout":                      {state("55P03"), txn.ReasonLockTimeout},
		"statement completion unknown":      {state("40003"), txn.ReasonNone},
		"integrity constraint":              {state("40002"), txn.ReasonNone},
		"unique violation":                  {state("23505"), txn.ReasonNone},
		"statement timeout":                 {state("57014"), txn.ReasonNone},
		"server shutting down":              {state("57P01"), txn.ReasonNone},
		"idle in transaction timeout":       {state("25P03"), txn.ReasonNone},
		"transaction already failed":        {state("25P02"), txn.ReasonNone},
		"bad value":                         {state("22P02"), txn.ReasonNone},
		"commit answered by rollback":       {fmt.Errorf("commit: %w", pgx.ErrTxCommitRollback), txn.ReasonRolledBack},
		"SQLite busy":                       {coded(5), txn.ReasonBusy},
		"SQLite busy, recovery":             {coded(261), txn.ReasonBusy},
		"SQLite busy, snapshot":             {fmt.Errorf("begin: %w", coded(517)), txn.ReasonBusy},
		"SQLite busy, timeout":              {coded(773), txn.ReasonBusy},
		"SQLite locked in its own cache":    {coded(6), txn.ReasonNone},
		"SQLite constraint":                 {coded(19), txn.ReasonNone},
		"SQLite constraint, unique (8·256)": {coded(2067), txn.ReasonNone},
		"connection lost":                   {io.ErrUnexpectedEOF, txn.ReasonNone},
		"bad connection":                    {driver.ErrBadConn, txn.ReasonNone},
		"context ended":                     {context.DeadlineExceeded, txn.ReasonNone},
		"text that only looks like it":      {errors.New("SQLSTATE 40001"), txn.ReasonNone},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			equal(t, "reason", txn.ReasonOf(tt.give), tt.want)
		})
	}
}
