package faultproxy_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/windrow-go/windrow/internal/faultproxy"
	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

// start gives a proxy, and the URLs of one database: through it, and directly.
func start(t *testing.T) (proxy *faultproxy.Proxy, through, direct string) {
	t.Helper()
	direct = pgtest.Database(t)
	proxy, through = pgtest.Proxy(t, direct)
	return proxy, through, direct
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // cut, mostly
	return conn
}

// table makes a table for the transactions, and returns a count of its rows.
func table(t *testing.T, direct string) (rows func() int) {
	t.Helper()
	conn := connect(t, direct)
	if _, err := conn.Exec(t.Context(), "CREATE TABLE rows (n bigint PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	return func() int {
		var n int
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM rows").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
}

// insert is a transaction with one statement, prepared by pgx and so sent by name
// from its second time on. The error is that of the COMMIT.
func insert(t *testing.T, conn *pgx.Conn, n int) error {
	t.Helper()
	tx, err := conn.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.Serializable})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "INSERT INTO rows (n) VALUES ($1)", n); err != nil {
		t.Fatal(err)
	}
	return tx.Commit(t.Context())
}

func TestACutBeforeTheCommitRollsBack(t *testing.T) {
	proxy, through, direct := start(t)
	rows := table(t, direct)
	conn := connect(t, through)
	proxy.CutAtCommit(2, faultproxy.BeforeForward, "")
	if err := insert(t, conn, 1); err != nil {
		t.Fatalf("first commit: %v", err)
	}
	if err := insert(t, conn, 2); err == nil {
		t.Error("the second commit returned no error")
	}
	if got := rows(); got != 1 || proxy.Cuts() != 1 {
		t.Errorf("%d rows, %d cuts; want 1 and 1", got, proxy.Cuts())
	}
}

func TestACutAfterTheReplyHidesACommit(t *testing.T) {
	proxy, through, direct := start(t)
	rows := table(t, direct)
	proxy.CutAtCommit(1, faultproxy.AfterReply, "")
	err := insert(t, connect(t, through), 1)
	var answer *pgconn.PgError
	if err == nil || errors.As(err, &answer) {
		t.Errorf("commit: %v, want a broken connection", err)
	}
	if got := rows(); got != 1 || proxy.Cuts() != 1 {
		t.Errorf("%d rows, %d cuts; want 1 and 1", got, proxy.Cuts())
	}
	if err := insert(t, connect(t, through), 2); err != nil {
		t.Errorf("disarmed after one cut, yet: %v", err)
	}
}

func TestOnlyTransactionsThatMatchAreCut(t *testing.T) {
	proxy, through, direct := start(t)
	rows := table(t, direct)
	conn := connect(t, through)
	if err := insert(t, conn, 1); err != nil { // from here on the INSERT goes by its name
		t.Fatal(err)
	}
	proxy.CutAtCommit(1, faultproxy.BeforeForward, "INSERT INTO rows")
	execAll(t, conn, "BEGIN", "SELECT 1", "COMMIT;", "INSERT INTO rows VALUES (2)", "BEGIN", "COMMIT")
	if err := insert(t, conn, 3); err == nil {
		t.Error("the matching transaction was committed")
	}
	if got := rows(); got != 2 || proxy.Cuts() != 1 {
		t.Errorf("%d rows, %d cuts; want 2 and 1", got, proxy.Cuts())
	}
}

func TestASavepointDoesNotHideItsTransaction(t *testing.T) {
	proxy, through, direct := start(t)
	table(t, direct)
	conn := connect(t, through)
	proxy.CutAtCommit(1, faultproxy.BeforeForward, "INSERT INTO rows")
	execAll(t, conn, "BEGIN", "INSERT INTO rows VALUES (1)", "SAVEPOINT s", "ROLLBACK TO s")
	if _, err := conn.Exec(t.Context(), "END"); err == nil || proxy.Cuts() != 1 {
		t.Errorf("commit: %v with %d cuts, want a cut connection", err, proxy.Cuts())
	}
}

func execAll(t *testing.T, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

func TestAPreparedCommitIsRecognised(t *testing.T) {
	for name, when := range map[string]faultproxy.When{
		"before": faultproxy.BeforeForward,
		"after":  faultproxy.AfterReply,
	} {
		t.Run(name, func(t *testing.T) {
			proxy, through, direct := start(t)
			rows := table(t, direct)
			conn := connect(t, through)
			if _, err := conn.Prepare(t.Context(), "done", " Commit ; "); err != nil {
				t.Fatal(err)
			}
			proxy.CutAtCommit(1, when, "rows")
			execAll(t, conn, "START TRANSACTION", "INSERT INTO rows VALUES (1)")
			if _, err := conn.PgConn().ExecPrepared(t.Context(), "done", nil, nil, nil).Close(); err == nil {
				t.Error("the commit returned no error")
			}
			want := map[faultproxy.When]int{faultproxy.BeforeForward: 0, faultproxy.AfterReply: 1}[when]
			if got := rows(); got != want || proxy.Cuts() != 1 {
				t.Errorf("%d rows, %d cuts; want %d and 1", got, proxy.Cuts(), want)
			}
		})
	}
}

func TestCutAllBreaksWhatIsOpen(t *testing.T) {
	proxy, through, _ := start(t)
	conn := connect(t, through)
	proxy.CutAll()
	if err := conn.Ping(t.Context()); err == nil {
		t.Error("a cut connection still answers")
	}
	if err := connect(t, through).Ping(t.Context()); err != nil {
		t.Errorf("a new connection: %v", err)
	}
}

func TestRefuseTurnsNewConnectionsAwayOnly(t *testing.T) {
	proxy, through, _ := start(t)
	before := connect(t, through)
	proxy.Refuse(true)
	if conn, err := pgx.Connect(t.Context(), through); err == nil {
		t.Errorf("connected: %v", conn.Close(t.Context()))
	}
	if err := before.Ping(t.Context()); err != nil {
		t.Errorf("the connection from before: %v", err)
	}
	proxy.Refuse(false)
	connect(t, through)
}

func TestHalfOpenSwallowsEverything(t *testing.T) {
	proxy, through, direct := start(t)
	conn := connect(t, through)
	proxy.HalfOpen(true)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := conn.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ping = %v, want no answer until the deadline", err)
	}
	_ = conn.PgConn().Conn().Close() // pgx may have done so already
	watcher := connect(t, direct)
	// Nothing tells that nothing happens: give the client's end time to arrive.
	if _, err := watcher.Exec(t.Context(), "SELECT pg_sleep(0.3)"); err != nil {
		t.Fatal(err)
	}
	if got := sessions(t, watcher); got != 1 {
		t.Errorf("%d other sessions on the server, want 1: it must not hear of the client's end", got)
	}
	proxy.HalfOpen(false)
	proxy.CutAll()
	if err := connect(t, through).Ping(t.Context()); err != nil {
		t.Errorf("after the fault: %v", err)
	}
}

func sessions(t *testing.T, conn *pgx.Conn) int {
	t.Helper()
	var n int
	const others = `SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`
	if err := conn.QueryRow(t.Context(), others).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestDelayHoldsBothWays(t *testing.T) {
	proxy, through, _ := start(t)
	conn := connect(t, through)
	const delay = 50 * time.Millisecond
	proxy.Delay(delay)
	begun := time.Now()
	if err := conn.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took < 2*delay {
		t.Errorf("a round trip took %v, want at least %v", took, 2*delay)
	}
}

func TestTheServersLastWordsArrive(t *testing.T) {
	_, through, direct := start(t)
	conn := connect(t, through)
	if _, err := connect(t, direct).Exec(t.Context(), "SELECT pg_terminate_backend($1, 5000)", conn.PgConn().PID()); err != nil {
		t.Fatal(err)
	}
	_, err := conn.Exec(t.Context(), "SELECT 1")
	var answer *pgconn.PgError
	if !errors.As(err, &answer) || answer.Code != "57P01" {
		t.Errorf("error = %v, want 57P01", err)
	}
}

func TestARefusedTLSRequestIsFollowedByThePlainProtocol(t *testing.T) {
	proxy, through, direct := start(t)
	rows := table(t, direct)
	u, err := url.Parse(through)
	if err != nil {
		t.Fatal(err)
	}
	u.RawQuery = "sslmode=prefer"
	proxy.CutAtCommit(1, faultproxy.BeforeForward, "")
	if err := insert(t, connect(t, u.String()), 1); err == nil || rows() != 0 {
		t.Errorf("commit: %v with %d rows, want a cut connection and none", err, rows())
	}
}

func TestLargeMessagesPass(t *testing.T) {
	_, through, _ := start(t)
	conn := connect(t, through)
	sent := make([]byte, 5<<20)
	var length int
	if err := conn.QueryRow(t.Context(), "SELECT length($1::bytea)", sent).Scan(&length); err != nil || length != len(sent) {
		t.Errorf("length = %d, %v; want %d", length, err, len(sent))
	}
}
