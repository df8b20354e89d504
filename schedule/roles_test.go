package schedule_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/windrow-go/windrow/schedule"
)

// The table in docs/scheduling.md.
func TestARoleWithTheDocumentedRightsCanDoItsJob(t *testing.T) {
	f := onPostgres(t, nil)
	f.every("a", time.Hour)
	asRole := func(name string, grants ...string) schedule.Store {
		f.exec("CREATE ROLE " + name + " LOGIN")
		t.Cleanup(func() { f.exec("DROP OWNED BY " + name + "; DROP ROLE " + name) })
		for _, grant := range append(grants, "USAGE ON SCHEMA windrow", "SELECT ON windrow.schema_version") {
			f.exec("GRANT " + grant + " TO " + name)
		}
		u, err := url.Parse(f.url)
		check(t, err)
		u.User = url.User(name)
		return f.openAt(u.String())
	}

	reader := asRole("schedule_reader", "SELECT ON windrow.schedules, windrow.schedule_runs")
	_, err := reader.List(t.Context())
	check(t, err)
	_, err = reader.History(t.Context(), "a", 1)
	check(t, err)
	if _, err := reader.RunNow(t.Context(), "a", "me"); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("a reader asks for a run: %v", err)
	}

	editor := asRole("schedule_editor", "SELECT, INSERT, UPDATE, DELETE ON windrow.schedules, windrow.schedule_runs")
	_, err = editor.Add(t.Context(), schedule.Schedule{Name: "b", Rule: every(t, time.Hour), Function: "f"})
	check(t, err)
	check(t, editor.Pause(t.Context(), "b", "me"))
	check(t, editor.Resume(t.Context(), "b"))
	check(t, editor.Remove(t.Context(), "b"))

	runner := asRole("schedule_runner", "SELECT, UPDATE ON windrow.schedules", "SELECT, INSERT, UPDATE ON windrow.schedule_runs")
	_, err = runner.RunNow(t.Context(), "a", "me")
	check(t, err)
	ticked, err := f.schedulerOn(runner, schedule.Options{Functions: map[string]schedule.Function{"f": noop}}).Tick(t.Context())
	check(t, err)
	equal(t, "ticked", fmt.Sprint(ticked), fmt.Sprint(schedule.Ticked{Started: 1}))
	asked, err := runner.RunNow(t.Context(), "a", "me")
	check(t, err)
	_, err = runner.Cancel(t.Context(), asked.ID, "me")
	check(t, err)
}
