package main_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// Rows that SIGKILL the worker that works them: they alone fail, and no row that was
// in the same worker's hands does.
func testRowsThatKillTheirWorkers(t *testing.T, p *place, rows int, killers ...int64) {
	const maxAttempts = 2
	p.load(rows)
	var ids []string
	for _, id := range killers {
		ids = append(ids, fmt.Sprint(id))
	}
	command := fmt.Sprintf(`case $WINDROW_ROW_ID in %s) kill -9 $PPID;; esac; echo {}`, strings.Join(ids, "|"))
	args := []string{"work", "--until-empty", "--lease", "1s", "-j", "2", "--max-attempts", fmt.Sprint(maxAttempts), "--exec", command}
	began := time.Now()
	for deaths := 0; ; deaths++ {
		end := p.run(args...)
		if end.code >= 0 { // not by a signal
			end.wants(3)
			t.Logf("%d deaths, %v", deaths, time.Since(began).Round(time.Millisecond))
			break
		}
		if most := len(killers) * (maxAttempts + 1); deaths == most {
			t.Fatalf("more than %d workers died", most)
		}
	}
	table := p.table()
	table.wants(map[string]int{"is_processed AND error IS NULL": rows - len(killers), "error IS NOT NULL": len(killers)})
	for _, r := range table.rows("error IS NOT NULL") {
		if !slices.Contains(killers, r.ID) || !strings.Contains(text(r.Error), "its worker was lost") {
			t.Errorf("row %d failed: %s", r.ID, text(r.Error))
		}
	}
}

func TestRowsThatKillTheirWorkersFailAlone(t *testing.T) {
	t.Run("postgres, one", func(t *testing.T) {
		t.Parallel()
		testRowsThatKillTheirWorkers(t, newFleet(t), fewer(1000, 300), 150)
	})
	t.Run("sqlite, three", func(t *testing.T) {
		t.Parallel()
		testRowsThatKillTheirWorkers(t, newPlace(t), fewer(1000, 300), 7, 8, 200)
	})
}
