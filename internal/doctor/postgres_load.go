package doctor

import (
	"context"
	"fmt"

	"github.com/windrow-go/windrow/internal/database"
)

// lookAtCheckpoints counts those that came because max_wal_size was full. The view
// was another one before version 17.
func lookAtCheckpoints(ctx context.Context, p *patient) ([]Finding, error) {
	type counts struct{ Timed, Requested int64 }
	query := `SELECT checkpoints_timed AS timed, checkpoints_req AS requested FROM pg_stat_bgwriter`
	if p.session.Number >= 170000 {
		query = `SELECT num_timed AS timed, num_requested AS requested FROM pg_stat_checkpointer`
	}
	c, err := askOne[counts](ctx, p, query, nil)
	if err != nil {
		return nil, err
	}
	if c.Requested <= c.Timed || c.Requested < 10 {
		return fine(fmt.Sprintf("%s by time, %s for want of room", comma(c.Timed), comma(c.Requested))), nil
	}
	settings, err := readSettings(ctx, p, "max_wal_size")
	if err != nil {
		return nil, err
	}
	wal := settings["max_wal_size"]
	want := fmt.Sprintf("%dMB", max(8<<10, int64(2*wal.number())>>20))
	return []Finding{{Severity: map[bool]Severity{true: Warning, false: Note}[p.rows >= large],
		What: fmt.Sprintf("%s of %s checkpoints came because max_wal_size (%s) was full, or were asked for (as by CREATE DATABASE, or a backup)", comma(c.Requested), comma(c.Requested+c.Timed), wal.shown()),
		Why:  "after each checkpoint every page that workers touch is written into the WAL as a whole: a multiple of what they change",
		Cure: wal.cure(p, want)}}, nil
}

// lookAtConnections counts those that are left.
func lookAtConnections(ctx context.Context, p *patient) ([]Finding, error) {
	type room struct {
		Most, Reserved, Taken, Windrow   int64
		DatabaseMost, DatabaseTaken      int64 // -1: no limit
		RoleMost, RoleTaken, OtherIdlers int64
	}
	r, err := askOne[room](ctx, p, roomSQL, nil)
	if err != nil {
		return nil, err
	}
	free, what, cure := r.Most-r.Reserved-r.Taken, "the server's max_connections", "ALTER SYSTEM SET max_connections = '200';  -- as a superuser; then restart the server"
	if left := r.DatabaseMost - r.DatabaseTaken; r.DatabaseMost >= 0 && left < free {
		free, what = left, "the database's limit"
		cure = fmt.Sprintf("ALTER DATABASE %s CONNECTION LIMIT -1;", quoted(p.session.Database))
	}
	if left := r.RoleMost - r.RoleTaken; r.RoleMost >= 0 && left < free {
		free, what = left, "the role's limit"
		cure = fmt.Sprintf("ALTER ROLE %s CONNECTION LIMIT -1;", quoted(p.session.Role))
	}
	if r.OtherIdlers > free {
		cure += "\n-- or end some of the " + count(r.OtherIdlers, "idle connection") + " of other programs, which may keep too many in their pools"
	}
	workers := max(0, free) / database.MaxConnections
	text := fmt.Sprintf("%s taken of %s (%s by windrow); %s leaves room for %s", comma(r.Taken), comma(r.Most), comma(r.Windrow), what, count(workers, "more worker"))
	if p.pooled || workers >= 10 {
		return fine(text), nil
	}
	severity := Note
	if workers < 1 {
		severity = Warning
	}
	return []Finding{{Severity: severity, What: text,
		Why:  fmt.Sprintf("a worker opens up to %d connections; one that gets none waits", database.MaxConnections),
		Cure: cure}}, nil
}

// roomSQL leaves out this program's own connection. Limits of roles do not bind
// superusers.
const roomSQL = `
SELECT
	CAST(current_setting('max_connections') AS bigint) AS most,
	CASE WHEN r.rolsuper THEN 0 ELSE
		CAST(current_setting('superuser_reserved_connections') AS bigint)
		+ CAST(coalesce(current_setting('reserved_connections', true), '0') AS bigint)
	END AS reserved,
	count(a.pid) AS taken,
	count(a.pid) FILTER (WHERE a.application_name LIKE 'windrow%') AS windrow,
	CAST(max(d.datconnlimit) AS bigint) AS database_most,
	count(a.pid) FILTER (WHERE a.datid = d.oid) AS database_taken,
	CAST(CASE WHEN r.rolsuper THEN -1 ELSE r.rolconnlimit END AS bigint) AS role_most,
	count(a.pid) FILTER (WHERE a.usesysid = r.oid) AS role_taken,
	count(a.pid) FILTER (WHERE a.state = 'idle' AND a.application_name NOT LIKE 'windrow%') AS other_idlers
FROM pg_roles AS r
JOIN pg_database AS d ON d.datname = current_database()
LEFT JOIN pg_stat_activity AS a ON a.usesysid IS NOT NULL AND a.datid IS NOT NULL AND a.pid <> pg_backend_pid()
WHERE r.rolname = current_user
GROUP BY r.oid, r.rolsuper, r.rolconnlimit`
