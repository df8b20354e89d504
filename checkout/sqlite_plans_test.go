package checkout_test

import (
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/libtnb/sqlite"

	"github.com/windrow-go/windrow/checkout"
)

// SQLite's planner sees the statement's text and the statistics, never the values.
func TestPlansOnSQLite(t *testing.T) {
	const byQueue = "USING INDEX unprocessed_datasets_idx"
	const byKey = "USING INTEGER PRIMARY KEY (rowid=?)"
	want := map[string]string{
		"peek fresh":    byQueue,
		"fresh bounds":  byQueue,
		"peek due":      byQueue,
		"agenda":        byQueue,
		"claim":         byKey,
		"check in":      byKey,
		"check in done": byKey,
		"renew":         byKey,
		"cancel":        byKey,
		"put back":      byKey,
		"picked":        byKey,
		"keep":          byKey,
		"restore":       byKey,
		"forget":        byKey,
		"diff":          byKey,
	}
	f := onSQLite(t)
	judge := func(when string) {
		t.Helper()
		for name, statement := range checkout.SQLiteStatements() {
			reads := 0
			for _, step := range f.explain(statement) {
				if strings.Contains(step, "TEMP B-TREE") {
					t.Errorf("%s, %s: sorts: %s", name, when, step)
				}
				if !strings.Contains(step, " datasets") && !strings.HasPrefix(step, "SEARCH d ") && !strings.HasPrefix(step, "SCAN d ") {
					continue
				}
				if reads++; !strings.Contains(step, want[name]) {
					t.Errorf("%s, %s: %s", name, when, step)
				}
			}
			if reads == 0 {
				t.Errorf("%s: its plan doesn't name the table", name)
			}
		}
	}
	judge("empty")
	f.add(20_000)
	judge("never analyzed")
	for _, processed := range []int{0, 10_000, 19_800, 19_998} {
		check(t, f.raw.Exec(`UPDATE datasets SET is_processed = 1, checkouts = 1, attempts = 1, checked_out_by = 'a',
			processed_at = 1, error = CASE WHEN id % 1000 = 0 THEN 'x' END WHERE id <= ?`, processed).Error)
		judge("analyzed before")
		_, err := f.Analyze(t.Context())
		check(t, err)
		f.raw = openRaw(t, sqlite.Open("file:"+f.url)) // statistics are read when a file is opened
		judge("analyzed")
	}
}

// explain returns the steps of a statement's plan.
func (f *fixture) explain(statement string) []string {
	f.t.Helper()
	pool, err := f.raw.DB()
	check(f.t, err)
	conn, err := pool.Conn(f.t.Context())
	check(f.t, err)
	defer conn.Close()
	var args []any
	for _, name := range []string{"ids", "run", "began"} {
		if strings.Contains(statement, "@"+name) {
			args = append(args, sql.Named(name, 1))
		}
	}
	if args == nil { // as many as it has question marks, or a few more
		args = slices.Repeat([]any{1}, strings.Count(statement, "?"))
	}
	rows, err := conn.QueryContext(f.t.Context(), "EXPLAIN QUERY PLAN "+statement, args...)
	if err != nil {
		f.t.Fatalf("%v: %s", err, statement)
	}
	defer rows.Close()
	var steps []string
	for rows.Next() {
		var id, parent, unused int
		var step string
		check(f.t, rows.Scan(&id, &parent, &unused, &step))
		steps = append(steps, step)
	}
	check(f.t, rows.Err())
	return steps
}
