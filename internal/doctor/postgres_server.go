package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/windrow-go/windrow/migrations"
	"github.com/windrow-go/windrow/model"
)

// session is who looks, and at what.
type session struct {
	Role, Database, Version, Encoding string
	Number                            int    // of the version: 150018 is 15.18
	Standby                           bool   // the server only follows another
	Host                              string // the server's address; empty: a socket, or unknown
}

const sessionSQL = `
SELECT
	CAST(current_user AS text) AS role,
	CAST(current_database() AS text) AS database,
	version() AS version,
	current_setting('server_encoding') AS encoding,
	CAST(current_setting('server_version_num') AS integer) AS number,
	pg_is_in_recovery() AS standby,
	coalesce(host(inet_server_addr()), '') AS host`

// lookAtConnection connects, and learns where.
func lookAtConnection(ctx context.Context, p *patient) ([]Finding, error) {
	var err error
	p.session, err = askOne[session](ctx, p, sessionSQL, nil)
	if err != nil {
		return []Finding{unreachable(p, err)}, nil
	}
	return fine(fmt.Sprintf("as role %s to database %s", p.session.Role, p.session.Database)), nil
}

// unreachable says what to do about a server that can't be reached.
func unreachable(p *patient, err error) Finding {
	f := Finding{Severity: Error, What: p.opts.Words(err), Why: "without the server workers can do nothing but wait"}
	var server *pgconn.PgError
	state := ""
	if errors.As(err, &server) {
		state = server.Code
	}
	switch {
	case strings.HasPrefix(state, "28"):
		f.Why = "the server does not let this role in: waiting will not change that"
		f.Cure = "# set the right user and password (in --database, PGPASSWORD or ~/.pgpass), or let it in by pg_hba.conf"
	case state == "3D000":
		f.Why = "a database of that name is not on this server"
		f.Cure = "createdb NAME  # on that server; or name another with --database"
	case state == "53300":
		f.Why = "all connections are taken: a new worker does not get in either"
		f.Cure = "SELECT application_name, usename, state, count(*) FROM pg_stat_activity GROUP BY 1, 2, 3 ORDER BY 4 DESC;  -- as a superuser, who gets in; then end some, or raise max_connections"
	case state == "57P03":
		f.Why = "the server starts, stops or recovers: workers wait for it"
		f.Cure = "# wait, and look into the server's log"
	case state != "":
		f.Cure = "# the server's log tells more"
	default:
		f.Cure = "pg_isready -d \"$WINDROW_DATABASE_URL\"  # and see that the server runs, listens on that address (listen_addresses), and no firewall is in between"
	}
	return f
}

// oldest is the oldest server that has what the migrations use
// (gen_random_uuid() without an extension).
const oldest = 13

// endOfLife is when a major version gets its last fixes, by its makers' calendar.
var endOfLife = map[int]string{
	13: "2025-11-13", 14: "2026-11-12", 15: "2027-11-11", 16: "2028-11-09", 17: "2029-11-08", 18: "2030-11-14",
}

func lookAtServer(_ context.Context, p *patient) ([]Finding, error) {
	s := p.session
	var findings []Finding
	major := s.Number / 10000
	if major < oldest {
		findings = append(findings, Finding{Severity: Error,
			What: fmt.Sprintf("the server is PostgreSQL %d; windrow needs %d or newer", major, oldest),
			Why:  "the tables can't be made there",
			Cure: "# upgrade the server (pg_upgrade), or use another"})
	}
	if last, err := time.Parse(time.DateOnly, endOfLife[major]); err == nil && p.opts.Now().After(last) {
		findings = append(findings, Finding{Severity: Note,
			What: fmt.Sprintf("PostgreSQL %d got its last fixes on %s", major, endOfLife[major]),
			Why:  "faults found since then, in vacuum and indexes too, stay in it",
			Cure: "# upgrade the server (pg_upgrade)"})
	}
	if !strings.HasPrefix(s.Version, "PostgreSQL ") {
		findings = append(findings, Finding{Severity: Note,
			What: "the server is not PostgreSQL itself: " + s.Version,
			Why:  "windrow is tested with PostgreSQL; others may conflict more, or plan otherwise"})
	}
	if s.Encoding != "UTF8" {
		findings = append(findings, Finding{Severity: Warning,
			What: "the database's encoding is " + s.Encoding + ", not UTF8",
			Why:  "a row or a result with a character that it lacks can't be stored, and fails",
			Cure: "CREATE DATABASE job ENCODING 'UTF8' TEMPLATE template0;  -- and load the rows there"})
	}
	name, _, _ := strings.Cut(s.Version, " on ")
	return orFine(findings, name), nil
}

func lookAtReadOnly(ctx context.Context, p *patient) ([]Finding, error) {
	if p.session.Standby {
		return []Finding{{Severity: Error,
			What: "the server is a standby: nothing can be written there",
			Why:  "workers wait until it is promoted; looking (status, export) works",
			Cure: "# name the primary in --database; or all servers, and &target_session_attrs=read-write"}}, nil
	}
	settings, err := readSettings(ctx, p, "default_transaction_read_only")
	if err != nil {
		return nil, err
	}
	if s, ok := settings["default_transaction_read_only"]; ok && s.Value == "on" {
		return []Finding{{Severity: Error,
			What: "transactions are read only by default (default_transaction_read_only = on)",
			Why:  "workers can neither check out nor check in",
			Cure: s.cure(p, "off")}}, nil
	}
	return fine("no: it can be written to"), nil
}

const mostApart = time.Second

// lookAtClock compares this machine's clock with the server's, as well as the way
// there and back allows; the shortest of three ways tells most.
func lookAtClock(ctx context.Context, p *patient) ([]Finding, error) {
	type clock struct{ Now time.Time }
	var apart, doubt time.Duration
	for i := range 3 {
		before := p.opts.Now()
		server, err := askOne[clock](ctx, p, `SELECT clock_timestamp() AS now`, nil)
		if err != nil {
			return nil, err
		}
		way := p.opts.Now().Sub(before)
		if i == 0 || way/2 < doubt {
			doubt = way / 2
			apart = server.Now.Sub(before.Add(doubt))
		}
	}
	if apart.Abs()-doubt <= mostApart {
		return fine(fmt.Sprintf("%s apart", spell(apart.Abs()))), nil
	}
	direction := map[bool]string{true: "behind", false: "ahead of"}[apart > 0]
	return []Finding{{Severity: Warning,
		What: fmt.Sprintf("this machine's clock is %s %s the server's", spell(apart.Abs()), direction),
		Why: "claims do not mind, since every lease is by the server's clock; but the log of a worker here does not fit the times in the table, " +
			"and passwords, certificates and tokens may seem to have run out",
		Cure: "timedatectl set-ntp true  # on whichever machine is wrong; then: timedatectl timesync-status, or chronyc tracking"}}, nil
}

// lookAtSchema looks for the tables, and how many rows they may have.
func lookAtSchema(ctx context.Context, p *patient) ([]Finding, error) {
	type facts struct {
		OID  int64
		Rows float64
	}
	f, err := askOne[facts](ctx, p, schemaSQL, pgx.NamedArgs{"schema": p.opts.Schema})
	if err != nil {
		return nil, err
	}
	migrator, err := migrations.Postgres(p.db, p.opts.Schema)
	if err != nil {
		return nil, err
	}
	p.oid, p.rows = uint32(f.OID), int64(max(0, f.Rows))
	switch err := migrator.Check(ctx); {
	case isState(err, "42501"): // which the privileges tell of
		return fine("the tables are there; their version can't be read by this role"), nil
	case errors.Is(err, model.ErrSchema):
		p.oid = 0
		command := "windrow migrate up"
		if p.opts.Schema != migrations.DefaultSchema {
			command += " --schema " + p.opts.Schema
		}
		return []Finding{{Severity: Error, What: p.opts.Words(err),
			Why:  "nothing of windrow works there yet; the checks of the tables were left out",
			Cure: command}}, nil
	case err != nil:
		return nil, err
	}
	version, err := migrator.Version(ctx)
	if err != nil {
		return nil, err
	}
	if version > migrations.Needed {
		return []Finding{{Severity: Note,
			What: fmt.Sprintf("the tables are of version %d, this program knows %d", version, migrations.Needed),
			Why:  "a newer windrow made them; this one works with them, and knows nothing of what is new",
			Cure: "# use the newer windrow everywhere"}}, nil
	}
	return fine(fmt.Sprintf("version %d, about %s", version, count(p.rows, "row"))), nil
}

const schemaSQL = `
SELECT
	coalesce(CAST(c.oid AS bigint), 0) AS oid,
	coalesce(CAST(c.reltuples AS double precision), 0) AS rows
FROM (SELECT 1) AS one
LEFT JOIN pg_namespace AS n ON n.nspname = CAST(@schema AS text)
LEFT JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = 'datasets' AND c.relkind IN ('r', 'p')`

// isState tells whether the server gave an error of that SQLSTATE.
func isState(err error, state string) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && server.Code == state
}
