package pgcluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/windrow-go/windrow/internal/pgcluster"
	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
)

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // an error here: the server is dead, as meant
	return conn
}

func exec1(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func value(t *testing.T, conn *pgx.Conn, sql string) string {
	t.Helper()
	var got string
	if err := conn.QueryRow(t.Context(), sql).Scan(&got); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return got
}

// eventually waits for what another process does; there is nothing to wait on.
func eventually(t *testing.T, what string, yes func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for !yes() {
		select {
		case <-deadline:
			t.Fatalf("not within 30 s: %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func gone(pid int) bool {
	state, err := exec.Command("ps", "-o", "stat=", "-p", fmt.Sprint(pid)).Output()
	return err != nil || strings.HasPrefix(strings.TrimSpace(string(state)), "Z")
}

func TestStopEndsTheServerAndRemovesItsFolder(t *testing.T) {
	cluster, err := pgcluster.Start(t.Context(), pgcluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pid := cluster.Pid()
	if pid == 0 || gone(pid) {
		t.Errorf("pid %d is not a running server", pid)
	}
	if err := cluster.Stop(); err != nil {
		t.Fatal(err)
	}
	if !gone(pid) {
		t.Errorf("the server, pid %d, still runs", pid)
	}
	if _, err := os.Stat(cluster.Folder()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	if err := cluster.Stop(); err != nil {
		t.Errorf("stopped twice: %v", err)
	}
}

func TestKillAndRestartKeepCommittedRows(t *testing.T) {
	cluster := pgtest.Cluster(t, pgcluster.Options{})
	url := cluster.URL("postgres")
	conn := connect(t, url)
	exec1(t, conn, "CREATE TABLE rows AS SELECT 7 AS n")
	backend := connect(t, url)
	backendPid := int(backend.PgConn().PID())
	busy := make(chan error, 1)
	go func() {
		// A backend in such a loop does not notice the postmaster's death.
		_, err := backend.Exec(context.Background(), "SET application_name = 'busy'; DO $$BEGIN LOOP END LOOP; END$$")
		busy <- err
	}()
	eventually(t, "the loop runs", func() bool {
		return value(t, conn, "SELECT count(*)::text FROM pg_stat_activity WHERE application_name = 'busy'") == "1"
	})
	pid := cluster.Pid()

	if err := cluster.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-busy; err == nil {
		t.Error("a statement outlived its server")
	}
	if cluster.Pid() != 0 || !gone(pid) || !gone(backendPid) {
		t.Errorf("after a kill: Pid() = %d, postmaster gone: %t, backend gone: %t", cluster.Pid(), gone(pid), gone(backendPid))
	}
	if err := cluster.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := value(t, connect(t, url), "SELECT n::text FROM rows"); got != "7" {
		t.Errorf("row = %s, want 7", got)
	}
}

func TestStopFastAndRestartKeepTheAddress(t *testing.T) {
	cluster := pgtest.Cluster(t, pgcluster.Options{})
	for range 2 {
		if err := cluster.StopFast(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := cluster.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	connect(t, cluster.URL("postgres"))
	if err := cluster.Restart(t.Context()); err == nil || !strings.Contains(err.Error(), "still runs") {
		t.Errorf("restarting a running server: %v", err)
	}
}

func TestSettingsReachTheServer(t *testing.T) {
	cluster := pgtest.Cluster(t, pgcluster.Options{
		Fsync:    true,
		Settings: map[string]string{"cluster_name": "it's mine", "max_connections": "17"},
	})
	conn := connect(t, cluster.URL("postgres"))
	for name, want := range map[string]string{
		"cluster_name":       "it's mine",
		"max_connections":    "17",
		"fsync":              "on",
		"synchronous_commit": "on",
		"server_encoding":    "UTF8",
	} {
		if got := value(t, conn, "SHOW "+name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if got := value(t, connect(t, pgtest.Database(t)), "SHOW fsync"); got != "off" {
		t.Errorf("fsync by default = %q, want off", got)
	}
}

func TestAnImpossibleSettingIsExplainedFromTheLog(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := pgcluster.Start(t.Context(), pgcluster.Options{Dir: dir, Settings: map[string]string{"work_mem": "plenty"}})
	if err == nil || !strings.Contains(err.Error(), `invalid value for parameter "work_mem"`) {
		t.Errorf("error = %v, want what the server's log says", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestMissingProgramsAreNamedWithAWayOut(t *testing.T) {
	t.Setenv(pgcluster.BinVariable, t.TempDir())
	_, err := pgcluster.Start(t.Context(), pgcluster.Options{})
	if !errors.Is(err, pgcluster.ErrNoPrograms) || !strings.Contains(err.Error(), pgcluster.BinVariable) {
		t.Errorf("error = %v, want ErrNoPrograms naming the variable", err)
	}
}

func TestDatabasesAreClonedAndDropped(t *testing.T) {
	cluster := pgtest.Shared(t)
	if err := cluster.CreateDatabase(t.Context(), `odd "name"`, ""); err != nil {
		t.Fatal(err)
	}
	original := connect(t, cluster.URL(`odd "name"`))
	exec1(t, original, "CREATE TABLE rows AS SELECT 7 AS n")
	if err := original.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	clone := connect(t, pgtest.Clone(t, `odd "name"`))
	if got := value(t, clone, "SELECT n::text FROM rows"); got != "7" {
		t.Errorf("row in the clone = %s, want 7", got)
	}
	connect(t, cluster.URL(`odd "name"`)) // a connection does not hinder the drop
	for range 2 {
		if err := cluster.DropDatabase(t.Context(), `odd "name"`); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPoolerSharesServerConnections(t *testing.T) {
	pooler := pgtest.Pooler(t, pgtest.Shared(t))
	conns := make([]*pgx.Conn, 3)
	backends := map[string]bool{}
	for i := range conns {
		config, err := pgx.ParseConfig(pooler.URL("postgres"))
		if err != nil {
			t.Fatal(err)
		}
		config.DefaultQueryExecMode = pgx.QueryExecModeExec
		if conns[i], err = pgx.ConnectConfig(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		defer conns[i].Close(t.Context())
		backends[value(t, conns[i], "SELECT pg_backend_pid()::text")] = true
	}
	if len(backends) > 2 {
		t.Errorf("3 clients met the backends %v, want at most 2: no sharing", backends)
	}
}

func TestServersEndWhenTheirOwnerIsKilled(t *testing.T) {
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerVariable+"=1")
	owner.Stderr = os.Stderr
	stdin, err := owner.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	var folder, pooler string
	var pid int
	if _, err := fmt.Fscan(stdout, &folder, &pid, &pooler); err != nil {
		t.Fatal(err)
	}
	if gone(pid) {
		t.Fatal("the server does not run")
	}

	if err := owner.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // "signal: killed"

	eventually(t, "the server is gone", func() bool { return gone(pid) })
	eventually(t, "its folder is gone", func() bool {
		_, err := os.Stat(folder)
		return errors.Is(err, os.ErrNotExist)
	})
	eventually(t, "the pooler is gone", func() bool {
		conn, err := pgx.Connect(t.Context(), pooler)
		if err == nil {
			return conn.Close(t.Context()) != nil
		}
		return strings.Contains(err.Error(), "connection refused")
	})
}
