package schedule_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/windrow-go/windrow/schedule"
)

const many = 10_000

// fill makes n schedules, a tenth of them with a history, each with a run that
// waits for tomorrow.
func (f *fixture) fill(n int) {
	f.t.Helper()
	series, tomorrow, past := `(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < `+fmt.Sprint(n)+`) SELECT i FROM n)`,
		`(unixepoch() + 86400 + i) * 1000000`, `(unixepoch() - h.i * 3600) * 1000000`
	name := `printf('s%05d', n.i)`
	hours := `(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20) SELECT i FROM n)`
	if f.engine == "postgres" {
		series, hours, tomorrow = fmt.Sprintf(`generate_series(1, %d)`, n), `generate_series(1, 20)`, `clock_timestamp() + interval '1 day' + make_interval(secs => i)`
		past, name = `clock_timestamp() - make_interval(hours => h.i)`, `'s' || lpad(CAST(n.i AS text), 5, '0')`
	}
	f.exec(`INSERT INTO {schedules} (name, rule, timezone, lock, timeout, missed, function, created_by)
		SELECT ` + name + `, CASE n.i % 3 WHEN 0 THEN 'every 15m' WHEN 1 THEN 'cron 0 3 * * *' ELSE 'cron */5 8-18 * * 1-5' END,
			'Europe/Warsaw', ` + name + `, 0, 'run-once', 'f', 'test' FROM ` + series + ` AS n` + f.column("n"))
	f.exec(`INSERT INTO {runs} (schedule, due_at, on_demand, created_by) SELECT ` + name + `, ` + tomorrow + `, false, 'test' FROM ` + series + ` AS n` + f.column("n"))
	f.exec(`INSERT INTO {runs} (schedule, due_at, started_at, finished_at, on_demand, created_by, state, output)
		SELECT ` + name + `, ` + past + `, ` + past + `, ` + past + `, false, 'test', 'done', 'some output' FROM ` +
		series + ` AS n` + f.column("n") + ` CROSS JOIN ` + hours + ` AS h` + f.column("h") + ` WHERE n.i % 10 = 0`)
	if f.engine == "postgres" {
		f.exec(`ANALYZE {schedules}`)
		f.exec(`ANALYZE {runs}`)
	}
}

// column names the column of a series, which SQLite's have named already.
func (f *fixture) column(of string) string {
	if f.engine == "sqlite" {
		return ""
	}
	return "(i)"
}

// Under the race detector, on a busy machine, everything takes many times longer.
func TestTenThousandSchedulesAreNoBurden(t *testing.T) {
	const bound = 10 * time.Second
	onEach(t, func(t *testing.T, f *fixture) {
		f.fill(many)
		measure := func(what string, do func()) {
			t.Helper()
			best := time.Hour
			for range 5 {
				began := time.Now()
				do()
				best = min(best, time.Since(began))
			}
			t.Logf("%s: %s", what, best)
			if best > bound {
				t.Errorf("%s took %s", what, best)
			}
		}
		var listed int
		measure("list, with the next three times", func() {
			listed = 0
			for _, o := range f.list() {
				listed += len(o.Coming(3))
			}
		})
		equal(t, "times", listed, 3*many)
		measure("get", func() { f.get("s05000") })
		measure("tick, nothing due", func() { equal(t, "ticked", f.tick(noop), schedule.Ticked{}) })
		measure("tick, one due", func() {
			f.ago("s05000", time.Second)
			began := time.Now()
			equal(t, "ticked", f.tick(noop), schedule.Ticked{Started: 1})
			t.Logf("tick, one due: %s", time.Since(began))
		})
		woken := make(chan time.Time, 1)
		serve(t, f.schedulerOn(f.open(), schedule.Options{Functions: map[string]schedule.Function{
			"f": func(context.Context, schedule.Run, io.Writer) error { woken <- time.Now(); return nil },
		}}))
		f.runNow("s00001")
		await(t, "the first", woken)
		measure("waking", func() {
			eventually(t, "nothing waits", func() bool { return f.count(`state IN ('waiting', 'running') AND on_demand`) == 0 })
			began := time.Now()
			f.runNow("s00001")
			t.Logf("waking: %s", await(t, "a run", woken).Sub(began))
		})
	})
}
