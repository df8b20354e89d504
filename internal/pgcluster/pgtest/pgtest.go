// Package pgtest gives tests their PostgreSQL: one private cluster for a test
// process, started by the first test that wants it, and in it a fresh database
// for each test; or a cluster of its own for a test that kills its server.
//
// A package that uses it says so once:
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }
//
// With WINDROW_KEEP=1 in the environment, a failed test's database stays, and
// the test's log says how to look into it.
package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/windrow-go/windrow/internal/faultproxy"
	"github.com/windrow-go/windrow/internal/pgcluster"
)

// shared is the one cluster of this test process. A variable of the package,
// because go test gives tests no other place for what they have in common.
var shared struct {
	start   sync.Once
	cluster *pgcluster.Cluster
	err     error
	names   atomic.Int64
}

// Run runs the tests, stops what they started, looks for leaked goroutines, and
// returns the exit code.
func Run(m *testing.M) int {
	code := m.Run()
	if shared.cluster != nil {
		if err := shared.cluster.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	if code != 0 {
		return code
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// Shared returns the cluster that all tests of this process have in common. What
// belongs to a whole server, such as roles, is theirs in common too.
func Shared(t testing.TB) *pgcluster.Cluster {
	t.Helper()
	shared.start.Do(func() {
		shared.cluster, shared.err = pgcluster.Start(context.Background(), pgcluster.Options{})
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster
}

// Database returns the URL of a fresh, empty database in the shared cluster. It is
// dropped after the test.
func Database(t testing.TB) string {
	t.Helper()
	return Clone(t, "")
}

// Clone is [Database] with the contents of another database, named as it is in
// the cluster; nobody may be connected to that one.
func Clone(t testing.TB, template string) string {
	t.Helper()
	cluster := Shared(t)
	name := databaseName(t)
	if err := cluster.CreateDatabase(t.Context(), name, template); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if kept(t, cluster, name) {
			return
		}
		if err := cluster.DropDatabase(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
	return cluster.URL(name)
}

// Cluster returns a server of the test's own, which it may kill and restart. It
// is gone after the test.
func Cluster(t testing.TB, options pgcluster.Options) *pgcluster.Cluster {
	t.Helper()
	cluster, err := pgcluster.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		kept(t, cluster, "")
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cluster
}

// Pooler starts a pgbouncer in transaction mode in front of a cluster, until the
// test ends.
func Pooler(t testing.TB, cluster *pgcluster.Cluster) *pgcluster.Pooler {
	t.Helper()
	pooler, err := pgcluster.StartPooler(t.Context(), cluster)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pooler.Stop(); err != nil {
			t.Error(err)
		}
	})
	return pooler
}

// Proxy starts a proxy in front of a database, until the test ends, and returns it
// with the database's URL through it.
func Proxy(t testing.TB, databaseURL string) (*faultproxy.Proxy, string) {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := faultproxy.Start(u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	through, err := proxy.URL(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	return proxy, through
}

// kept keeps a failed test's cluster, if that is wanted, and tells how to use it.
func kept(t testing.TB, cluster *pgcluster.Cluster, database string) bool {
	if !t.Failed() || os.Getenv("WINDROW_KEEP") != "1" {
		return false
	}
	if err := cluster.Keep(); err != nil {
		t.Error(err)
		return false
	}
	t.Logf("kept for you: database %q in %s; start it with postgres -D %s/data -p PORT as the owner of that folder",
		database, cluster.Folder(), cluster.Folder())
	return true
}

// longestName leaves room for the number within PostgreSQL's 63 bytes.
const longestName = 50

func databaseName(t testing.TB) string {
	readable := strings.Map(func(r rune) rune {
		if r < 'a' || r > 'z' {
			return '_'
		}
		return r
	}, strings.ToLower(t.Name()))
	return fmt.Sprintf("%.*s_%d", longestName, readable, shared.names.Add(1))
}
