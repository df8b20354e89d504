package schedule_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/windrow-go/windrow/schedule"
)

// Every statement finds its runs by an index, however long the history.
func TestPlansOnSQLite(t *testing.T) {
	f := onSQLite(t, nil)
	judge := func(when string) {
		t.Helper()
		for name, statement := range schedule.SQLiteStatements() {
			statement = regexp.MustCompile(`@\w+`).ReplaceAllString(statement, "1")
			var steps []struct{ Detail string }
			check(t, f.raw.Raw("EXPLAIN QUERY PLAN "+statement).Scan(&steps).Error)
			for _, step := range steps {
				onSchedules := regexp.MustCompile(`^(SEARCH|SCAN) (s|schedules|json_each|CONSTANT ROW)\b`).MatchString(step.Detail)
				reads := strings.HasPrefix(step.Detail, "SEARCH ") || strings.HasPrefix(step.Detail, "SCAN ")
				if reads && !onSchedules && !strings.Contains(step.Detail, "USING") {
					t.Errorf("%s, %s: %s", name, when, step.Detail)
				}
				if strings.Contains(step.Detail, "TEMP B-TREE") {
					t.Errorf("%s, %s: sorts: %s", name, when, step.Detail)
				}
			}
		}
	}
	judge("empty")
	f.fill(1000)
	judge("filled")
	f.exec(`ANALYZE`)
	judge("analyzed")
}
