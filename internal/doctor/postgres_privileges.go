package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// right is one that a command needs on an object of the job's schema.
type right struct {
	object string // empty: the schema itself
	rights []string
}

// need is what a command needs besides USAGE of the schema. docs/guarantees.md has
// the same, and a test holds them together.
type need struct {
	commands string
	rights   []right
}

var needs = []need{
	{"work", []right{
		{"schema_version", []string{"SELECT"}}, {"job", []string{"SELECT"}}, {"runs", []string{"SELECT"}},
		{"datasets", []string{"SELECT", "UPDATE"}},
		{"tallies", []string{"SELECT", "INSERT", "DELETE"}},
		{"workers", []string{"SELECT", "INSERT", "UPDATE", "DELETE"}},
		{"history", []string{"INSERT"}}}},
	{"work, with handlers that use marks", []right{
		{"marks", []string{"SELECT", "INSERT"}}}},
	{"load", []right{
		{"schema_version", []string{"SELECT"}}, {"job", []string{"SELECT"}},
		{"datasets", []string{"SELECT", "INSERT"}}, {"dataset_keys", []string{"SELECT", "INSERT"}},
		{"datasets_id_seq", []string{"USAGE"}},
		{"loads", []string{"SELECT", "INSERT", "UPDATE"}}}},
	{"pause, resume", []right{
		{"schema_version", []string{"SELECT"}}, {"job", []string{"SELECT", "INSERT", "UPDATE"}}}},
	{"reprocess, runs cancel", []right{
		{"schema_version", []string{"SELECT"}}, {"job", []string{"SELECT"}}, {"dataset_keys", []string{"SELECT"}},
		{"datasets", []string{"SELECT", "UPDATE"}},
		{"runs", []string{"SELECT", "INSERT", "UPDATE"}},
		{"tallies", []string{"SELECT", "INSERT", "DELETE"}},
		{"history", []string{"SELECT", "INSERT", "DELETE"}}}},
	{"run", []right{{"job", []string{"INSERT", "UPDATE"}}}},
}

// looking is the name of what needs to read everything.
const looking = "status, show, errors, export"

// missing are the rights that this role lacks.
type missing struct {
	Object string // empty: the schema
	Right  string
	Kind   string // r: a table, S: a sequence, …
	Has    bool
}

// privilegesSQL lists every object of the schema with every right that matters, and
// whether this role has it.
const privilegesSQL = `
SELECT
	'' AS object,
	'USAGE' AS right,
	'n' AS kind,
	has_schema_privilege(CAST(@schema AS text), 'USAGE') AS has
UNION ALL
SELECT
	CAST(c.relname AS text),
	r.name,
	CAST(c.relkind AS text),
	has_table_privilege(c.oid, r.name)
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) AS r (name)
WHERE n.nspname = CAST(@schema AS text) AND c.relkind IN ('r', 'p', 'v')
UNION ALL
SELECT
	CAST(c.relname AS text),
	'USAGE',
	'S',
	has_sequence_privilege(c.oid, 'USAGE')
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = CAST(@schema AS text) AND c.relkind = 'S'
ORDER BY 1, 2`

// lookAtPrivileges tells which commands this role can't run, and what to grant.
func lookAtPrivileges(ctx context.Context, p *patient) ([]Finding, error) {
	list, err := ask[missing](ctx, p, privilegesSQL, pgx.NamedArgs{"schema": p.opts.Schema})
	if err != nil {
		return nil, err
	}
	held := map[string]bool{}
	var tables []string
	for _, m := range list {
		held[m.Right+" "+m.Object] = m.Has
		if m.Kind != "S" && m.Kind != "n" && m.Right == "SELECT" && m.Object != "schema_lock" {
			tables = append(tables, m.Object)
		}
	}
	look := need{commands: looking}
	for _, t := range tables {
		look.rights = append(look.rights, right{t, []string{"SELECT"}})
	}
	var findings []Finding
	mayLook := len(look.grants(p, held)) == 0
	for _, n := range append([]need{look}, needs...) {
		grants := n.grants(p, held)
		if len(grants) == 0 {
			continue
		}
		f := Finding{Severity: Note, What: fmt.Sprintf("role %s lacks rights for: windrow %s", p.session.Role, n.commands),
			Why:  "that command fails for it; if it is not meant to run it, all is well",
			Cure: strings.Join(grants, "\n")}
		if n.commands == "work" {
			f.Severity, f.Why = Warning, "workers of this role can't check out rows"
			if !mayLook {
				f.Severity, f.Why = Error, "this role can neither work nor look"
			}
		}
		findings = append(findings, f)
	}
	return orFine(findings, "role "+p.session.Role+" may run every command"), nil
}

// grants are the statements that give the role what it lacks.
func (n need) grants(p *patient, held map[string]bool) []string {
	role, schema := quoted(p.session.Role), `"`+p.opts.Schema+`"`
	var grants []string
	if !held["USAGE "] {
		grants = append(grants, fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s;", schema, role))
	}
	for _, r := range n.rights {
		var lacking []string
		for _, name := range r.rights {
			if !held[name+" "+r.object] {
				lacking = append(lacking, name)
			}
		}
		if len(lacking) == 0 {
			continue
		}
		kind := ""
		if r.object == "datasets_id_seq" {
			kind = "SEQUENCE "
		}
		grants = append(grants, fmt.Sprintf("GRANT %s ON %s%s.%s TO %s;", strings.Join(lacking, ", "), kind, schema, r.object, role))
	}
	return grants
}
