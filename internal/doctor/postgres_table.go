package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// options are the table's storage options as the migrations make them.
var options = map[string]string{
	"fillfactor":                      "33",
	"autovacuum_vacuum_scale_factor":  "0.02",
	"autovacuum_vacuum_threshold":     "50000",
	"autovacuum_analyze_scale_factor": "0.05",
	"autovacuum_analyze_threshold":    "50000",
	"autovacuum_vacuum_cost_limit":    "800",
	"vacuum_index_cleanup":            "on",
}

const (
	whyFillfactor = "without room for the further versions of a row on its page the server looks for room at the end of the table, where all workers queue for it, and writes more WAL"
	whyVacuum     = "every row is written twice, and vacuum has to keep up: with these the migrations have it come after some 2 %, at four times the usual pace, and clean the indexes too"
)

type tableFacts struct {
	Options     []string
	Persistence string
	Kind        string
	Triggers    []string
	Frozen      int64 // transactions since the oldest unfrozen row
	FreezeAt    int64 // autovacuum_freeze_max_age
}

const tableSQL = `
SELECT
	coalesce(c.reloptions, CAST('{}' AS text[])) AS options,
	CAST(c.relpersistence AS text) AS persistence,
	CAST(c.relkind AS text) AS kind,
	ARRAY(
		SELECT CAST(t.tgname AS text)
		FROM pg_trigger AS t
		WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgenabled <> 'D'
		ORDER BY t.tgname
	) AS triggers,
	CAST(age(c.relfrozenxid) AS bigint) AS frozen,
	CAST(current_setting('autovacuum_freeze_max_age') AS bigint) AS freeze_at
FROM pg_class AS c
WHERE c.oid = CAST(@table AS oid)`

// lookAtTable compares the table with what the migrations made.
func lookAtTable(ctx context.Context, p *patient) ([]Finding, error) {
	f, err := askOne[tableFacts](ctx, p, tableSQL, p.about())
	if err != nil {
		return nil, err
	}
	findings := f.optionFindings(p)
	if f.Persistence == "u" {
		findings = append(findings, Finding{Severity: Error, What: p.table + " is an unlogged table",
			Why:  "the server empties it after a crash: all rows and results are lost",
			Cure: fmt.Sprintf("ALTER TABLE %s SET LOGGED;", p.table)})
	}
	if f.Kind != "r" {
		findings = append(findings, Finding{Severity: Note, What: p.table + " is not an ordinary table",
			Why: "windrow is tested with the table that its migrations make; another kind may conflict more, or plan otherwise"})
	}
	if len(f.Triggers) > 0 {
		var cure strings.Builder
		for _, name := range f.Triggers {
			fmt.Fprintf(&cure, "ALTER TABLE %s DISABLE TRIGGER %s;  -- if it can be done without\n", p.table, quoted(name))
		}
		findings = append(findings, Finding{Severity: Note, What: "the table has triggers: " + strings.Join(f.Triggers, ", "),
			Why:  "they run inside check-out and check-in, and make these longer; one that fails keeps rows from being worked",
			Cure: strings.TrimSpace(cure.String())})
	}
	if f.Frozen > 2*f.FreezeAt {
		severity := map[bool]Severity{true: Error, false: Warning}[f.Frozen > 1_600_000_000]
		findings = append(findings, Finding{Severity: severity, What: fmt.Sprintf("the table has not been frozen for %s", count(f.Frozen, "transaction")),
			Why:  "after two thousand million the server takes no more writes; something keeps autovacuum from freezing: see the oldest snapshot, and the table's locks",
			Cure: fmt.Sprintf("VACUUM (FREEZE, VERBOSE) %s;", p.table)})
	}
	return orFine(findings, "storage options and kind are as the migrations make them"), nil
}

// optionFindings tells of options that are otherwise than the migrations make them.
func (f tableFacts) optionFindings(p *patient) []Finding {
	have := map[string]string{}
	for _, o := range f.Options {
		name, value, _ := strings.Cut(o, "=")
		have[name] = value
	}
	var findings []Finding
	if v, set := have["autovacuum_enabled"]; set && slices.Contains([]string{"false", "off", "no", "0"}, v) {
		findings = append(findings, Finding{Severity: Warning, What: "autovacuum is turned off for the table",
			Why:  "every row is written twice; without vacuum the table and its indexes grow, and workers wade through dead entries",
			Cure: fmt.Sprintf("ALTER TABLE %s RESET (autovacuum_enabled);", p.table)})
	}
	if got := orDefault(have["fillfactor"], "100"); got != options["fillfactor"] {
		findings = append(findings, Finding{Severity: Note, What: fmt.Sprintf("fillfactor is %s, not %s", got, options["fillfactor"]), Why: whyFillfactor,
			Cure: fmt.Sprintf("ALTER TABLE %s SET (fillfactor = %s);  -- holds for pages that are filled from now on", p.table, options["fillfactor"])})
	}
	var off, set []string
	for _, name := range slices.Sorted(maps.Keys(options)) {
		if name != "fillfactor" && have[name] != options[name] {
			off = append(off, name+" "+orDefault(have[name], "not set"))
			set = append(set, name+" = "+options[name])
		}
	}
	if len(off) > 0 {
		findings = append(findings, Finding{Severity: Note, What: "the table's autovacuum options are not as the migrations make them: " + strings.Join(off, ", "), Why: whyVacuum,
			Cure: fmt.Sprintf("ALTER TABLE %s SET (%s);", p.table, strings.Join(set, ", "))})
	}
	return findings
}

func orDefault(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

type statistics struct {
	Rows     float64 // as last counted; -1: never
	Size     int64   // of the table now
	Analyzed bool
	Changed  int64 // rows since
	Live     int64
}

const statisticsSQL = `
SELECT
	CAST(c.reltuples AS double precision) AS rows,
	pg_relation_size(c.oid) AS size,
	s.last_analyze IS NOT NULL OR s.last_autoanalyze IS NOT NULL AS analyzed,
	coalesce(s.n_mod_since_analyze, 0) AS changed,
	coalesce(s.n_live_tup, 0) AS live
FROM pg_class AS c
LEFT JOIN pg_stat_all_tables AS s ON s.relid = c.oid
WHERE c.oid = CAST(@table AS oid)`

// smallTable is a size below which plans do not matter.
const smallTable = 8 << 20

// lookAtStatistics: what the planner knows of the table.
func lookAtStatistics(ctx context.Context, p *patient) ([]Finding, error) {
	s, err := askOne[statistics](ctx, p, statisticsSQL, p.about())
	if err != nil {
		return nil, err
	}
	const why = "with wrong statistics the server may plan check-outs as scans of the whole table, which are slow and conflict"
	cure := fmt.Sprintf("ANALYZE %s;  -- as its owner", p.table)
	switch {
	case s.Size < smallTable:
		return fine("the table is small: " + size(s.Size)), nil
	case s.Rows <= 0:
		return []Finding{{Severity: Warning, What: fmt.Sprintf("the table has %s, and its rows were never counted", size(s.Size)), Why: why, Cure: cure}}, nil
	case !s.Analyzed && s.Changed == 0: // after a crash the server forgets when it was
		return fine(fmt.Sprintf("about %s", count(int64(s.Rows), "row"))), nil
	case float64(s.Changed) > 200_000+0.5*s.Rows:
		return []Finding{{Severity: Warning, What: fmt.Sprintf("the statistics are stale: %s changed since they were made of %s", count(s.Changed, "row"), comma(int64(s.Rows))), Why: why, Cure: cure}}, nil
	}
	return fine(fmt.Sprintf("about %s, %s changed since they were counted", count(int64(s.Rows), "row"), comma(s.Changed))), nil
}

// lock is one that somebody holds on the table.
type lock struct {
	Mode, Role, Application, State string
	PID                            int64
	Age                            float64 // seconds of its transaction; negative: hidden
	Waiting                        int64   // sessions that wait for the table
}

const locksSQL = `
SELECT
	l.mode,
	coalesce(CAST(a.usename AS text), '') AS role,
	coalesce(a.application_name, '') AS application,
	coalesce(a.state, '') AS state,
	CAST(coalesce(l.pid, 0) AS bigint) AS pid,
	CAST(coalesce(extract(epoch FROM clock_timestamp() - a.xact_start), -1) AS double precision) AS age,
	(SELECT count(*) FROM pg_locks AS w WHERE w.relation = l.relation AND w.database = l.database AND NOT w.granted) AS waiting
FROM pg_locks AS l
LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
WHERE l.relation = CAST(@table AS oid)
	AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
	AND l.granted
	AND l.mode IN ('ShareUpdateExclusiveLock', 'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
	AND NOT EXISTS (SELECT 1 FROM pg_stat_progress_vacuum AS v WHERE v.pid = l.pid)
	AND NOT EXISTS (SELECT 1 FROM pg_stat_progress_analyze AS z WHERE z.pid = l.pid)
ORDER BY age DESC`

// lookAtLocks looks for locks that keep workers, or vacuum, out.
func lookAtLocks(ctx context.Context, p *patient) ([]Finding, error) {
	locks, err := ask[lock](ctx, p, locksSQL, p.about())
	if err != nil {
		return nil, err
	}
	var findings []Finding
	for _, l := range locks {
		keepsWorkers := l.Mode != "ShareUpdateExclusiveLock"
		if !keepsWorkers && l.Age >= 0 && l.Age < 10 || len(findings) == mostShown {
			continue
		}
		f := Finding{Severity: Note, Why: "vacuum does not get at the table meanwhile, and dead rows pile up",
			What: fmt.Sprintf("session %d (role %s, application %q, %s) holds a %s on the table", l.PID, l.Role, l.Application, orDefault(l.State, "its state is hidden"), l.Mode),
			Cure: fmt.Sprintf("SELECT pg_terminate_backend(%d);  -- if it is not a CREATE INDEX or an ALTER TABLE that is wanted", l.PID)}
		if keepsWorkers {
			f.Severity, f.Why = Warning, fmt.Sprintf("check-outs and check-ins wait until its transaction ends; %s waiting now", areWaiting(l.Waiting))
		}
		if l.Age >= 0 {
			f.What += ", in a transaction of " + spell(seconds(l.Age))
		}
		findings = append(findings, f)
	}
	return orFine(findings, "nobody keeps workers or vacuum out"), nil
}

func areWaiting(n int64) string {
	if n == 1 {
		return "1 session is"
	}
	return count(n, "session") + " are"
}

// lookAtRowSecurity looks for policies that hide rows from this role.
func lookAtRowSecurity(ctx context.Context, p *patient) ([]Finding, error) {
	type secured struct {
		Name     string
		Active   bool // for this role
		Policies []string
		Open     bool // some policy lets everything through
	}
	tables, err := ask[secured](ctx, p, rowSecuritySQL, pgx.NamedArgs{"schema": p.opts.Schema})
	if err != nil {
		return nil, err
	}
	var findings []Finding
	for _, t := range tables {
		table := quoted(p.opts.Schema) + "." + quoted(t.Name)
		policies := "there is no policy, which hides all of them"
		if len(t.Policies) > 0 {
			policies = "by " + strings.Join(t.Policies, ", ")
		}
		f := Finding{Severity: Error, What: fmt.Sprintf("row security hides rows of %s from role %s: %s", table, p.session.Role, policies),
			Why: "hidden rows are never worked, nor counted, and nobody is told",
			Cure: fmt.Sprintf("ALTER TABLE %s DISABLE ROW LEVEL SECURITY;  -- as its owner\nALTER ROLE %s BYPASSRLS;  -- or this, as a superuser",
				table, quoted(p.session.Role))}
		switch {
		case !t.Active:
			f.Severity, f.What = Note, fmt.Sprintf("row security is on for %s, but not for role %s", table, p.session.Role)
			f.Why = "workers of another role see only the rows that a policy shows them; " + policies
		case t.Open:
			f.Severity, f.What = Note, fmt.Sprintf("row security is on for %s, with a policy that shows all rows", table)
			f.Why = "it hides nothing now; it does as soon as that policy is changed"
		}
		findings = append(findings, f)
	}
	return orFine(findings, "it hides nothing"), nil
}

const rowSecuritySQL = `
SELECT
	CAST(c.relname AS text) AS name,
	row_security_active(c.oid) AS active,
	ARRAY(
		SELECT CAST(r.polname AS text)
		FROM pg_policy AS r
		WHERE r.polrelid = c.oid
		ORDER BY r.polname
	) AS policies,
	EXISTS (
		SELECT 1
		FROM pg_policy AS r
		WHERE r.polrelid = c.oid AND r.polpermissive AND r.polcmd = '*'
			AND pg_get_expr(r.polqual, r.polrelid) = 'true'
			AND (0 = ANY (r.polroles) OR EXISTS (SELECT 1 FROM unnest(r.polroles) AS member WHERE pg_has_role(member, 'USAGE')))
	) AND NOT EXISTS (
		SELECT 1
		FROM pg_policy AS r
		WHERE r.polrelid = c.oid AND NOT r.polpermissive
	) AS open
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = CAST(@schema AS text) AND c.relkind IN ('r', 'p') AND c.relrowsecurity
ORDER BY c.relname`
