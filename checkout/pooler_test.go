package checkout_test

import (
	"testing"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
)

// Behind a pooler in transaction mode, two server connections for all: what
// belongs to a session is lost, or is somebody else's. The address asks for no
// prepared statements, as the documentation says.
func TestAllWorksThroughATransactionModePooler(t *testing.T) {
	f := onPostgres(t, checkout.Options{})
	var name string
	check(t, f.raw.Raw(`SELECT current_database()`).Scan(&name).Error)
	pooled := *f
	pooled.url = pgtest.Pooler(t, pgtest.Shared(t)).URL(name) + "&default_query_exec_mode=exec"
	pooled.store = pooled.open()
	pooled.addKeyed("k0", "k1", "k2")
	for _, job := range []string{"work", "load", "look", "mark", "reprocess", "work"} {
		if err := jobs[job](&pooled); err != nil {
			t.Errorf("%s: %v", job, err)
		}
	}
	// No setting of a transaction's has stayed behind in the server's sessions.
	s := pooled.open().(*checkout.Postgres)
	for range 4 {
		for _, setting := range []string{"lock_timeout", "enable_seqscan", "idle_in_transaction_session_timeout"} {
			value, err := s.Setting(t.Context(), setting)
			check(t, err)
			equal(t, setting, value, map[bool]string{true: "on", false: "0"}[setting == "enable_seqscan"])
		}
	}
}
