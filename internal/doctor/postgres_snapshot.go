package doctor

import (
	"context"
	"fmt"
	"time"
)

// From when on a snapshot counts as old: by its age, or by the transactions that
// have begun since. 10,000 of them may be some millions of rows checked in.
const (
	oldNote         = time.Minute
	oldWarning      = 10 * time.Minute
	oldTransactions = 10_000
)

// mostShown bounds how many of one kind are listed.
const mostShown = 5

const whySnapshot = "vacuum can't remove any row version that died since, here or elsewhere in the database: " +
	"they pile up in the table and at the head of the queue's index, where all workers look"

// holder is who keeps vacuum from removing what has died.
type holder struct {
	Kind         string // session, sender (of a replica that gives feedback) or prepared
	Name         string // of the prepared transaction
	PID          int64
	Role         string
	Application  string
	Client       string
	State        string
	Database     string
	Age          float64 // seconds; negative: hidden from this role, or not known
	Transactions int64   // begun since
}

// holdersSQL: only snapshots of this database, and those of replicas, hold vacuum
// up here. A vacuum's own does not. A session that has written, but has no snapshot
// just now, holds it by its transaction's id.
const holdersSQL = `
SELECT
	CASE WHEN a.backend_type = 'walsender' OR s.pid IS NOT NULL THEN 'sender' ELSE 'session' END AS kind,
	'' AS name,
	CAST(a.pid AS bigint) AS pid,
	coalesce(CAST(a.usename AS text), '') AS role,
	coalesce(a.application_name, '') AS application,
	coalesce(host(a.client_addr), '') AS client,
	coalesce(a.state, '') AS state,
	coalesce(CAST(a.datname AS text), '') AS database,
	CAST(coalesce(extract(epoch FROM clock_timestamp() - a.xact_start), -1) AS double precision) AS age,
	CAST(greatest(age(a.backend_xmin), age(a.backend_xid)) AS bigint) AS transactions
FROM pg_stat_activity AS a
LEFT JOIN pg_stat_replication AS s ON s.pid = a.pid
WHERE (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL)
	AND a.pid <> pg_backend_pid()
	AND (a.datname IS NULL OR a.datname = current_database())
	AND a.backend_type IS DISTINCT FROM 'autovacuum worker'
	AND NOT EXISTS (SELECT 1 FROM pg_stat_progress_vacuum AS v WHERE v.pid = a.pid)
UNION ALL
SELECT
	'prepared',
	p.gid,
	0,
	CAST(p.owner AS text),
	'',
	'',
	'',
	CAST(p.database AS text),
	CAST(extract(epoch FROM clock_timestamp() - p.prepared) AS double precision),
	CAST(age(p.transaction) AS bigint)
FROM pg_prepared_xacts AS p
WHERE p.database = current_database()
ORDER BY transactions DESC, age DESC`

func lookAtSnapshots(ctx context.Context, p *patient) ([]Finding, error) {
	holders, err := ask[holder](ctx, p, holdersSQL, nil)
	if err != nil {
		return nil, err
	}
	var findings []Finding
	var left int64
	oldest := time.Duration(0)
	for _, h := range holders {
		oldest = max(oldest, seconds(h.Age))
		severity := h.severity()
		switch {
		case severity == OK:
		case len(findings) == mostShown:
			left++
		default:
			findings = append(findings, Finding{Severity: severity, What: h.what(), Why: whySnapshot, Cure: h.cure()})
		}
	}
	if left > 0 {
		findings = append(findings, Finding{Severity: Note, What: fmt.Sprintf("and %s with younger ones", count(left, "other")), Why: whySnapshot,
			Cure: "SELECT pid, usename, application_name, state, xact_start FROM pg_stat_activity WHERE backend_xmin IS NOT NULL ORDER BY age(backend_xmin) DESC;"})
	}
	if len(holders) == 0 {
		return fine("nobody else holds one"), nil
	}
	return orFine(findings, "the oldest is of "+spell(oldest)+" ago"), nil
}

func (h holder) severity() Severity {
	age := seconds(h.Age)
	switch {
	case h.Transactions >= oldTransactions, h.Kind != "sender" && age >= oldWarning:
		return Warning
	case h.Kind == "prepared" && age >= oldNote: // nobody's session any more: often it was forgotten
		return Warning
	case h.Kind == "prepared", h.Kind == "session" && age >= oldNote:
		return Note
	default:
		return OK
	}
}

func (h holder) what() string {
	since := ""
	if h.Age >= 0 {
		since = " for " + spell(seconds(h.Age))
	}
	since += ", while " + count(h.Transactions, "transaction") + " began"
	switch h.Kind {
	case "prepared":
		return fmt.Sprintf("the prepared transaction %q of role %s is open%s", h.Name, h.Role, since)
	case "sender":
		return fmt.Sprintf("the standby %q (%s) holds a snapshot here by hot_standby_feedback%s", h.Application, h.Client, since)
	}
	state := h.State
	if state == "" {
		state = "its state is hidden from this role"
	}
	return fmt.Sprintf("session %d (role %s, application %q, %s) holds a snapshot%s", h.PID, h.Role, h.Application, state, since)
}

func (h holder) cure() string {
	switch h.Kind {
	case "prepared":
		return fmt.Sprintf("ROLLBACK PREPARED %s;  -- or COMMIT PREPARED; in database %s, as %s or a superuser", literal(h.Name), h.Database, h.Role)
	case "sender":
		return "SELECT pid, usename, application_name, xact_start, query FROM pg_stat_activity ORDER BY xact_start LIMIT 5;  -- on the standby: end the oldest\n" +
			"ALTER SYSTEM SET hot_standby_feedback = off;  -- on the standby, if its long queries may be cancelled instead"
	}
	if h.State == "active" || h.State == "" {
		return fmt.Sprintf("SELECT pg_cancel_backend(%d);  -- ends its statement; pg_terminate_backend(%d) ends the session", h.PID, h.PID)
	}
	return fmt.Sprintf("SELECT pg_terminate_backend(%d);\nALTER ROLE %s SET idle_in_transaction_session_timeout = '10min';  -- so that it does not come again", h.PID, quoted(h.Role))
}

// slot is a replication slot.
type slot struct {
	Name, Kind      string
	Database        string
	Active          bool
	PID             int64
	Rows, Catalogue int64 // transactions since its xmin and its catalog_xmin; -1: it has none
	Retained        int64 // bytes of WAL kept for it
	MostWAL         int64 // max_wal_size, in bytes
}

const slotsSQL = `
SELECT
	CAST(s.slot_name AS text) AS name,
	s.slot_type AS kind,
	coalesce(CAST(s.database AS text), '') AS database,
	s.active,
	CAST(coalesce(s.active_pid, 0) AS bigint) AS pid,
	CAST(coalesce(age(s.xmin), -1) AS bigint) AS rows,
	CAST(coalesce(age(s.catalog_xmin), -1) AS bigint) AS catalogue,
	CAST(coalesce(pg_wal_lsn_diff(
		CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END,
		s.restart_lsn), 0) AS bigint) AS retained,
	pg_size_bytes(current_setting('max_wal_size')) AS most_wal
FROM pg_replication_slots AS s
ORDER BY s.active, greatest(age(s.xmin), age(s.catalog_xmin)) DESC NULLS LAST`

func lookAtSlots(ctx context.Context, p *patient) ([]Finding, error) {
	slots, err := ask[slot](ctx, p, slotsSQL, nil)
	if err != nil {
		return nil, err
	}
	var findings []Finding
	for _, s := range slots {
		if f := s.finding(); f.Severity != OK && len(findings) < mostShown {
			findings = append(findings, f)
		}
	}
	if len(slots) == 0 {
		return fine("there are none"), nil
	}
	return orFine(findings, count(int64(len(slots)), "slot")+", none of which holds anything up"), nil
}

// leastRetained is from when on the WAL kept for a slot is worth a word.
const leastRetained = 1 << 30

func (s slot) finding() Finding {
	state := "inactive"
	cure := fmt.Sprintf("SELECT pg_drop_replication_slot(%s);  -- if nobody will come back for it; or start its consumer", literal(s.Name))
	if s.Active {
		state = fmt.Sprintf("in use by pid %d", s.PID)
		cure = fmt.Sprintf("SELECT * FROM pg_stat_replication WHERE pid = %d;  -- see why its consumer is behind", s.PID)
	}
	f := Finding{Severity: OK, Cure: cure}
	switch {
	case s.Rows >= oldTransactions, s.Rows >= 0 && !s.Active:
		f.Severity, f.Why = Warning, whySnapshot
		f.What = fmt.Sprintf("replication slot %q (%s, %s) holds a snapshot, while %s began", s.Name, s.Kind, state, count(s.Rows, "transaction"))
	case s.Retained >= max(leastRetained, 2*s.MostWAL):
		f.Severity, f.Why = Warning, "the server keeps its WAL until the slot's consumer has read it; when the disk is full, the server stops"
		f.What = fmt.Sprintf("replication slot %q (%s, %s) makes the server keep %s of WAL", s.Name, s.Kind, state, size(s.Retained))
		f.Cure += "\nALTER SYSTEM SET max_slot_wal_keep_size = '50GB';  -- a bound for the future, as a superuser\nSELECT pg_reload_conf();"
	case s.Catalogue >= 0 && !s.Active:
		f.Severity, f.Why = Note, "vacuum can't clean the server's catalogues, and all WAL since is kept; windrow's own tables are not held up"
		f.What = fmt.Sprintf("replication slot %q (%s, %s) holds a snapshot of the catalogues, while %s began", s.Name, s.Kind, state, count(s.Catalogue, "transaction"))
	}
	return f
}
