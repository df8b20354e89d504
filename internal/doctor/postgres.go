package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/internal/txn"
	"github.com/windrow-go/windrow/migrations"
)

// Options say how to look. The zero value is the default.
type Options struct {
	// Schema is the PostgreSQL schema of the job; default "windrow".
	Schema string
	// Now is this machine's clock; default time.Now.
	Now func() time.Time
	// Words puts an error for people, without passwords; default its own text.
	Words func(error) string

	longLog int64 // from how many bytes on a log of SQLite's is long; default 128 MiB
}

func (o Options) withDefaults() Options {
	if o.Schema == "" {
		o.Schema = migrations.DefaultSchema
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Words == nil {
		o.Words = error.Error
	}
	if o.longLog == 0 {
		o.longLog = 2 * cutBack
	}
	return o
}

// patient is a PostgreSQL server with a job, and what the first checks have learnt.
type patient struct {
	db      *gorm.DB
	address string
	opts    Options

	session session
	table   string // quoted, with its schema
	oid     uint32 // of the table datasets; 0: it isn't there
	rows    int64  // an estimate
	pooled  bool   // there is a pooler in between
	locked  bool   // somebody keeps the table locked exclusively
}

// Postgres looks at the server at address and at the job there, as the role of the
// address: what is set for a role or hidden from it is seen only so. The findings
// come worst first.
func Postgres(ctx context.Context, address string, opts Options) []Finding {
	return look(ctx, address, opts, postgresChecks)
}

func look(ctx context.Context, address string, opts Options, checks []check[*patient]) []Finding {
	opts = opts.withDefaults()
	db, err := database.OpenPostgres(plainly(address), nil)
	if err != nil {
		return []Finding{{Severity: Error, Check: "connection", What: opts.Words(err),
			Why:  "without an address that can be read there is no way to the server",
			Cure: "# an address looks so: --database postgres://user@host:5432/name"}}
	}
	defer database.Close(db)
	p := &patient{db: db, address: address, opts: opts, table: `"` + opts.Schema + `".datasets`}
	return examine(ctx, p, checks, unseen)
}

// postgresChecks stand in the order of what they need of each other.
var postgresChecks = []check[*patient]{
	{name: "connection", look: lookAtConnection, timeout: 12 * time.Second},
	{name: "server", look: lookAtServer, applies: connected},
	{name: "read only", look: lookAtReadOnly, applies: connected},
	{name: "pooler", look: lookAtPooler, applies: connected, timeout: 5 * time.Second},
	{name: "clock", look: lookAtClock, applies: connected},
	{name: "schema", look: lookAtSchema, applies: connected},
	{name: "privileges", look: lookAtPrivileges, applies: hasTable},
	{name: "row security", look: lookAtRowSecurity, applies: hasTable},
	{name: "table", look: lookAtTable, applies: hasTable},
	{name: "indexes", look: lookAtIndexes, applies: hasTable},
	{name: "statistics", look: lookAtStatistics, applies: hasTable},
	{name: "plans", look: lookAtPlans, applies: hasFreeTable},
	{name: "oldest snapshot", look: lookAtSnapshots, applies: connected},
	{name: "replication slots", look: lookAtSlots, applies: connected},
	{name: "dead rows", look: lookAtDeadRows, applies: hasTable},
	{name: "head of the queue", look: lookAtHead, applies: hasFreeTable},
	{name: "table locks", look: lookAtLocks, applies: hasTable},
	{name: "settings", look: lookAtSettings, applies: connected},
	{name: "checkpoints", look: lookAtCheckpoints, applies: connected},
	{name: "connections", look: lookAtConnections, applies: connected},
	{name: "free space", look: lookAtServersDisk, applies: connected},
}

func connected(p *patient) bool    { return p.session.Role != "" }
func hasTable(p *patient) bool     { return p.oid != 0 }
func hasFreeTable(p *patient) bool { return p.oid != 0 && !p.locked }

// plainly makes the driver send statements without preparing them by name, which
// works through every pooler. An address that can't be read stays as it is.
func plainly(address string) string {
	const mode = "default_query_exec_mode"
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" {
		return address + " " + mode + "=exec"
	}
	q := u.Query()
	q.Set(mode, "exec")
	u.RawQuery = q.Encode()
	return u.String()
}

// guard bounds a look on the server's side too, so that nothing goes on there when
// it is given up here; a little sooner, so that it is the server that tells.
var guard = txn.Statement{SQL: `
SELECT
	set_config('statement_timeout', '1500ms', true),
	set_config('lock_timeout', '500ms', true)`}

var readOnly = txn.Statement{SQL: `SET TRANSACTION READ ONLY`}

// ask runs one query in a READ ONLY transaction, after settings that are local to it.
func ask[T any](ctx context.Context, p *patient, query string, args pgx.NamedArgs, settings ...string) ([]T, error) {
	before := []txn.Statement{guard}
	for _, s := range settings {
		before = append(before, txn.Statement{SQL: s})
	}
	return askAfter[T](ctx, p, before, query, args)
}

func askAfter[T any](ctx context.Context, p *patient, before []txn.Statement, query string, args pgx.NamedArgs) (rows []T, err error) {
	question := txn.Statement{
		SQL: strings.ReplaceAll(query, "{table}", p.table),
		Rows: func(answer pgx.Rows) (err error) {
			rows, err = pgx.CollectRows(answer, pgx.RowToStructByName[T])
			return err
		},
	}
	if args != nil {
		question.Args = []any{args}
	}
	statements := append([]txn.Statement{readOnly}, before...)
	err = txn.Pipeline(ctx, p.db, pgx.ReadCommitted, append(statements, question)...)
	return rows, err
}

// askOne is ask for a query that has one row.
func askOne[T any](ctx context.Context, p *patient, query string, args pgx.NamedArgs) (T, error) {
	rows, err := ask[T](ctx, p, query, args)
	if err == nil && len(rows) != 1 {
		err = fmt.Errorf("%d rows in place of one", len(rows))
	}
	if err != nil {
		var none T
		return none, err
	}
	return rows[0], nil
}

// about are the arguments of queries about the table.
func (p *patient) about() pgx.NamedArgs {
	return pgx.NamedArgs{"table": int64(p.oid), "schema": p.opts.Schema}
}

// unseen words what kept a check from being made.
func unseen(p *patient, err error) (f Finding, over bool) {
	var server *pgconn.PgError
	var connect *pgconn.ConnectError
	f = Finding{Severity: Note, What: "could not be looked at: " + p.opts.Words(err), Why: "what is wrong there, if anything, is not known"}
	if errors.As(err, &server) {
		switch server.Code {
		case "42501":
			f.What = "could not be looked at: " + server.Message
			f.Cure = fmt.Sprintf("GRANT pg_monitor TO %s;  -- as a superuser; or ask as the tables' owner", quoted(p.session.Role))
		case "42703", "42883", "42P01", "42704":
			f.What = "could not be looked at, on this version of the server: " + server.Message
		case "55P03":
			p.locked = true
			f.Severity = Warning
			f.What = "could not be looked at: somebody keeps the table locked exclusively"
			f.Why = "workers wait for that lock too"
			f.Cure = "-- who it is stands under \"table locks\""
		case "57014":
			f.Severity = Warning
			f.What = "the server did not answer within 1.5 s"
			f.Why = "a server that is so slow for a small question is overloaded, or something is locked"
		}
	}
	switch {
	case errors.As(err, &connect):
		f.Severity, over = Error, true
		f.What = "the connection was lost, and there is no new one: " + p.opts.Words(err)
		f.Why = "without the server workers can do nothing but wait"
	case errors.Is(err, context.DeadlineExceeded):
		f.Severity = Warning
		f.What = "the answer took too long"
		f.Why = "a server, or a network, that is so slow for a small question makes workers slow"
	}
	return f, over
}

// quoted is a name as SQL takes it.
func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

// literal is a text as SQL takes it.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

func comma(n int64) string { return humanize.Comma(n) }

// size is a number of bytes for people.
func size(bytes int64) string { return humanize.IBytes(uint64(max(0, bytes))) }

// seconds converts what the server tells.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
