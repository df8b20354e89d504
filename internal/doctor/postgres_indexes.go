package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/windrow-go/windrow/checkout"
)

// wanted is an index of the table as the migrations make it.
type wanted struct {
	name, definition string // from USING on, as the server writes it
	create           string // with {table} for the table
	why              string
	perRow           int64 // bytes that it takes for each row of the table at most, when it is in order; 0: for each entry
}

// An entry takes 20 or 28 bytes, and pages are 90 % full. Of a row that is worked
// there are three versions until vacuum comes, each with an entry in the primary
// key, and two of them in the queue.
var wantedIndexes = []wanted{
	{name: "datasets_pkey", definition: "USING btree (id)", perRow: 67,
		create: "ALTER TABLE {table} ADD CONSTRAINT datasets_pkey PRIMARY KEY (id);",
		why:    "check-out, renewal and check-in find their rows by it; without, each of them reads the whole table and locks it against the others"},
	{name: "unprocessed_datasets_idx", definition: "USING btree (available_at, id) WHERE (NOT is_processed)", perRow: 62,
		create: "CREATE INDEX CONCURRENTLY unprocessed_datasets_idx ON {table} (available_at, id) WHERE NOT is_processed;",
		why:    "it is the queue: without, every look for rows reads the whole table"},
	{name: "failed_datasets_idx", definition: "USING btree (id) WHERE (is_processed AND (error IS NOT NULL))",
		create: "CREATE INDEX CONCURRENTLY failed_datasets_idx ON {table} (id) WHERE is_processed AND error IS NOT NULL;",
		why:    "reprocess and export find the failed rows by it; without, they read the whole table"},
}

type index struct {
	Name, Definition string
	Valid            bool
	Constraint       bool
	Size             int64
	Entries          float64
	Building         bool
}

const indexesSQL = `
SELECT
	CAST(i.relname AS text) AS name,
	pg_get_indexdef(i.oid) AS definition,
	x.indisvalid AND x.indisready AND x.indislive AS valid,
	x.indisunique AS constraint,
	pg_relation_size(i.oid) AS size,
	CAST(i.reltuples AS double precision) AS entries,
	EXISTS (SELECT 1 FROM pg_stat_progress_create_index AS b WHERE b.index_relid = i.oid) AS building
FROM pg_index AS x
JOIN pg_class AS i ON i.oid = x.indexrelid
WHERE x.indrelid = CAST(@table AS oid)
ORDER BY i.relname`

// lookAtIndexes compares the table's indexes with those of the migrations.
func lookAtIndexes(ctx context.Context, p *patient) ([]Finding, error) {
	list, err := ask[index](ctx, p, indexesSQL, p.about())
	if err != nil {
		return nil, err
	}
	byName := map[string]index{}
	for _, i := range list {
		byName[i.Name] = i
	}
	var findings []Finding
	var total int64
	for _, w := range wantedIndexes {
		i, there := byName[w.name]
		delete(byName, w.name)
		total += i.Size
		if f := w.compare(p, i, there); f.Severity != OK {
			findings = append(findings, f)
		}
	}
	for _, i := range list {
		if _, further := byName[i.Name]; further {
			findings = append(findings, i.furtherFinding(p))
		}
	}
	return orFine(findings, "as the migrations make them, "+size(total)), nil
}

// leastBloat is a size below which an index is not worth rebuilding.
const leastBloat = 64 << 20

func (w wanted) compare(p *patient, i index, there bool) Finding {
	place := `"` + p.opts.Schema + `".` + w.name
	create := strings.ReplaceAll(w.create, "{table}", p.table)
	drop := "DROP INDEX CONCURRENTLY " + place + ";\n"
	reindex := "REINDEX INDEX CONCURRENTLY " + place + ";"
	expected := w.perRow * p.rows
	if w.perRow == 0 {
		expected = 23 * int64(max(0, i.Entries))
	}
	switch {
	case !there:
		return Finding{Severity: Error, What: "the index " + w.name + " is missing", Why: w.why, Cure: create}
	case !i.Valid && i.Building:
		return Finding{Severity: Note, What: "the index " + w.name + " is being built", Why: w.why,
			Cure: "SELECT phase, blocks_done, blocks_total FROM pg_stat_progress_create_index;  -- how far it is"}
	case !i.Valid:
		return Finding{Severity: Error, What: "the index " + w.name + " is invalid: it was not built to its end", Why: "the server does not use it; " + w.why, Cure: reindex}
	case !strings.HasSuffix(i.Definition, " "+w.definition):
		if w.name == "datasets_pkey" {
			drop = fmt.Sprintf("ALTER TABLE %s DROP CONSTRAINT %s;\n", p.table, w.name)
		}
		return Finding{Severity: Warning, What: fmt.Sprintf("the index %s is not as the migrations make it: %s", w.name, i.Definition), Why: w.why, Cure: drop + create}
	case i.Size > max(leastBloat, 2*expected):
		return Finding{Severity: Warning, What: fmt.Sprintf("the index %s has %s, where some %s are usual for %s", w.name, size(i.Size), size(expected), count(p.rows, "row")),
			Why: "most of it is empty: it takes room in memory that the fleet's pages need, and it does not shrink by itself", Cure: reindex}
	}
	return Finding{Severity: OK}
}

// furtherFinding is about an index that the migrations know nothing of; one of a
// REINDEX CONCURRENTLY that was cut off has a name of its own.
func (i index) furtherFinding(p *patient) Finding {
	place := `"` + p.opts.Schema + `".` + quoted(i.Name)
	f := Finding{Severity: Note, What: fmt.Sprintf("a further index stands on the table: %s, %s", i.Name, size(i.Size)),
		Why:  "check-out and check-in write into every index of the table: each further one is paid for twice for each row",
		Cure: "DROP INDEX CONCURRENTLY " + place + ";  -- if it can be done without"}
	if !i.Valid && !i.Building {
		f.Severity, f.What = Warning, "an invalid index was left over on the table: "+i.Name
	}
	if i.Constraint {
		f.Cure = fmt.Sprintf("ALTER TABLE %s DROP CONSTRAINT %s;  -- if it can be done without; DROP INDEX CONCURRENTLY %s; if it is no constraint", p.table, quoted(i.Name), place)
	}
	return f
}

// lookAtPlans has the worker's statements explained, as a worker would run them.
func lookAtPlans(ctx context.Context, p *patient) ([]Finding, error) {
	store, err := checkout.OpenPostgres(ctx, p.address, checkout.Options{Schema: p.opts.Schema})
	if err != nil {
		return nil, err
	}
	defer store.Close()
	faults, err := store.CheckPlans(ctx)
	if isState(err, "42501") {
		return []Finding{{Severity: Note, What: "the plans of the workers' statements can't be looked at by this role, which may not run them",
			Why: "whether they go by the indexes is not known", Cure: "# ask as the workers' role"}}, nil
	}
	if err != nil {
		return nil, err
	}
	findings := planFindings(faults)
	text := "the workers' statements go by the indexes meant for them"
	if p.rows < large/100 {
		text = "of a table so small they prove nothing"
	}
	return orFine(findings, text), nil
}

// planFindings has one finding for all statements that want the same cure.
func planFindings(faults []checkout.PlanFault) (findings []Finding) {
	var cures []string
	byCure := map[string][]string{}
	for _, f := range faults {
		if byCure[f.Cure] == nil {
			cures = append(cures, f.Cure)
		}
		byCure[f.Cure] = append(byCure[f.Cure], fmt.Sprintf("%s (%s)", f.Statement, f.Found))
	}
	for _, cure := range cures {
		findings = append(findings, Finding{Severity: Warning,
			What: "the server plans statements of workers with steps that should not be there: " + strings.Join(byCure[cure], ", "),
			Why:  "they read more than they should, which makes workers slow, and may make check-outs conflict",
			Cure: pasteable(cure)})
	}
	return findings
}

// pasteable makes a comment of the words before and after a statement.
func pasteable(cure string) string {
	for _, verb := range []string{"ALTER ", "CREATE ", "REINDEX ", "ANALYZE "} {
		if at := strings.Index(cure, verb); at >= 0 {
			comment, statement := cure[:at], cure[at:]
			statement, rest, _ := strings.Cut(statement, "; ")
			statement, also, _ := strings.Cut(statement, ", as ")
			words := strings.Trim(strings.Join([]string{comment, also, rest}, " "), " :")
			if words == "" {
				return statement + ";"
			}
			return statement + ";  -- " + words
		}
	}
	return "-- " + cure
}

// headSQL does what every look of a worker does: it takes the first row.
const headSQL = `
EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON)
SELECT id
FROM {table}
WHERE NOT is_processed
ORDER BY available_at, id
LIMIT 1`

// From when on the pages that are read for one row are worth a word. In order it is
// a handful.
const (
	headNote    = 1_000
	headWarning = 10_000
)

// lookAtHead measures what lies dead ahead of the first row: how many pages the
// server reads to find it.
func lookAtHead(ctx context.Context, p *patient) ([]Finding, error) {
	type explained struct {
		Plan string `db:"QUERY PLAN"`
	}
	settings := `SELECT set_config('statement_timeout', '1s', true), set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', 'off', true)`
	if able, err := p.canScanQueue(ctx); err != nil || !able {
		return nil, err // which the findings about rights and indexes tell
	}
	began := time.Now()
	rows, err := ask[explained](ctx, p, headSQL, nil, settings)
	took := time.Since(began)
	if isState(err, "57014") {
		return []Finding{headFinding(Warning, "it takes more than a second to find the first row of the queue", p)}, nil
	}
	if err != nil {
		return nil, err
	}
	pages, err := pagesOf(rows[0].Plan)
	text := fmt.Sprintf("%s read to find the first row of the queue, in %s", count(pages, "page"), spell(took))
	switch {
	case err != nil:
		return nil, err
	case pages >= headWarning:
		return []Finding{headFinding(Warning, text, p)}, nil
	case pages >= headNote:
		return []Finding{headFinding(Note, text, p)}, nil
	}
	return fine(text), nil
}

func headFinding(severity Severity, text string, p *patient) Finding {
	return Finding{Severity: severity, What: "dead entries lie ahead of the check-out: " + text,
		Why:  "every worker has to wade through them when it looks for what has come due",
		Cure: fmt.Sprintf("VACUUM (INDEX_CLEANUP ON) %s;  -- as its owner; in vain while somebody holds an old snapshot", p.table)}
}

// canScanQueue tells whether the role may read the table and the index is there.
func (p *patient) canScanQueue(ctx context.Context) (bool, error) {
	type able struct{ Able bool }
	a, err := askOne[able](ctx, p, `
SELECT
	has_table_privilege(CAST(@table AS oid), 'SELECT')
	AND has_schema_privilege(CAST(@schema AS text), 'USAGE')
	AND EXISTS (
		SELECT 1
		FROM pg_index AS x
		JOIN pg_class AS i ON i.oid = x.indexrelid
		WHERE x.indrelid = CAST(@table AS oid) AND i.relname = 'unprocessed_datasets_idx' AND x.indisvalid
	) AS able`, p.about())
	return a.Able, err
}

// pagesOf adds up the pages that a plan's uppermost step has touched; these include
// those of the steps below.
func pagesOf(plan string) (int64, error) {
	var explained []struct {
		Plan struct {
			Hit  int64 `json:"Shared Hit Blocks"`
			Read int64 `json:"Shared Read Blocks"`
		}
	}
	if err := json.Unmarshal([]byte(plan), &explained); err != nil || len(explained) != 1 {
		return 0, fmt.Errorf("a plan that can't be read: %w", err)
	}
	return explained[0].Plan.Hit + explained[0].Plan.Read, nil
}
