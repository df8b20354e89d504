package schedule_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
	"github.com/windrow-go/windrow/schedule"
)

// daemonVariable makes this test binary a scheduler on the job at the address that
// the variable holds, with short leases.
const daemonVariable = "SCHEDULE_TEST_DAEMON"

func TestMain(m *testing.M) {
	if address := os.Getenv(daemonVariable); address != "" {
		if err := serveAt(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(pgtest.Run(m))
}

func serveAt(address string) error {
	var store schedule.Store
	var err error
	if address[0] == '/' {
		store, err = schedule.OpenSQLite(context.Background(), address, false, schedule.StoreOptions{})
	} else {
		store, err = schedule.OpenPostgres(context.Background(), address, schedule.StoreOptions{})
	}
	if err != nil {
		return err
	}
	defer store.Close()
	s, err := schedule.New(store, schedule.Options{AllowCommands: true, Lease: shortLease})
	if err != nil {
		return err
	}
	return s.Serve(context.Background())
}

const shortLease = 3 * time.Second

// daemon starts a scheduler that is a process of its own. It is gone after the test.
func daemon(t *testing.T, address string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), daemonVariable+"="+address)
	cmd.Stderr = os.Stderr
	check(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be gone
		_ = cmd.Wait()
	})
	return cmd
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
