package migrations_test

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
)

// All start at once, each with connections of its own as a process has, on a
// database that has nothing. One of them migrates, the others find it done.
func TestManyFirstStartsAtOnce(t *testing.T) {
	for range 3 {
		t.Run("postgres", func(t *testing.T) {
			url := pgtest.Database(t)
			startTogether(t, 6, func() place { return postgresAt(t, url, "windrow") })
		})
	}
	// Without its lock, SQLite fails in one round of fifteen or so.
	for range 12 {
		t.Run("sqlite", func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "job.db")
			startTogether(t, 8, func() place { return sqliteAt(t, path) })
		})
	}
}

func startTogether(t *testing.T, starters int, open func() place) {
	t.Helper()
	places := make([]place, starters)
	for i := range places {
		places[i] = open()
	}
	var running sync.WaitGroup
	errs := make([]error, starters)
	steps := make([]int, starters)
	begin := make(chan struct{})
	for i, p := range places {
		m := p.migrator()
		running.Go(func() {
			<-begin
			took, err := m.Up(t.Context())
			errs[i], steps[i] = err, len(took)
		})
	}
	close(begin)
	running.Wait()
	check(t, errors.Join(errs...))
	migrated := 0
	for _, n := range steps {
		migrated += min(n, 1)
	}
	equal(t, "who migrated", migrated, 1)
	equal(t, "rows of job", places[0].count("job"), 1)
	check(t, places[0].migrator().Check(t.Context()))
}

// Behind a pooler in transaction mode each statement may reach another server
// process: no lock and no setting of a session holds.
func TestManyFirstStartsThroughAPooler(t *testing.T) {
	cluster := pgtest.Shared(t)
	pooler := pgtest.Pooler(t, cluster)
	check(t, cluster.CreateDatabase(t.Context(), "pooled", ""))
	url := pooler.URL("pooled") + "&default_query_exec_mode=exec"
	startTogether(t, 6, func() place { return postgresAt(t, url, "windrow") })
	p := postgresAt(t, url, "windrow")
	p.downAll()
	wantVersion(t, p.migrator(), 0)
}
