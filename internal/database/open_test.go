package database_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/internal/pgcluster"
	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
	"github.com/windrow-go/windrow/model"
)

const secret = "s3cr3t-w0rd"

func hides(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		if strings.Contains(inner.Error(), secret) {
			t.Fatalf("the password is in %q", inner)
		}
	}
}

func TestABadAddressIsRefusedWithoutItsPassword(t *testing.T) {
	for _, address := range []string{
		"postgres://me:" + secret + "@host:port/db",
		"postgres://me:" + secret + "@host/db?sslmode=perhaps",
		"postgres://me:" + secret + "@ho st/db",
		"postgres://me:" + secret + "%zz@host/db",
		"host=h password=" + secret + " port=x",
		"host=h password='" + secret,
		"host=h password=" + secret + " sslmode=perhaps",
		secret,
	} {
		t.Run(strings.ReplaceAll(address, secret, "…"), func(t *testing.T) {
			db, err := database.OpenPostgres(address, nil)
			if err == nil {
				check(t, database.Close(db))
			}
			hides(t, err)
			if !strings.Contains(err.Error(), "database address") {
				t.Errorf("%v doesn't say what is wrong", err)
			}
			if strings.Contains(database.ServerName(address), secret) {
				t.Error("the password is in the server's name")
			}
		})
	}
}

func TestARefusedConnectionIsUnavailableAndHidesThePassword(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	check(t, err)
	check(t, listener.Close())
	err = ping(t, "postgres://me:"+secret+"@"+listener.Addr().String()+"/db?sslmode=disable")
	hides(t, err)
	if !errors.Is(err, model.ErrUnavailable) {
		t.Errorf("%v is not ErrUnavailable", err)
	}
}

func ping(t *testing.T, address string) error {
	t.Helper()
	db, err := database.OpenPostgres(address, nil)
	check(t, err)
	defer func() { check(t, database.Close(db)) }()
	return database.Ping(t.Context(), db)
}

// A password that the server doesn't accept will not be accepted later either:
// waiting for it would hide the mistake.
func TestAWrongPasswordIsNoOutage(t *testing.T) {
	cluster := pgtest.Cluster(t, pgcluster.Options{})
	conn, err := pgx.Connect(t.Context(), cluster.URL("postgres"))
	check(t, err)
	_, err = conn.Exec(t.Context(), `CREATE ROLE me LOGIN PASSWORD 'another'`)
	check(t, err)
	var rules string
	check(t, conn.QueryRow(t.Context(), `SHOW hba_file`).Scan(&rules))
	check(t, os.WriteFile(rules, []byte("host all me all scram-sha-256\nhost all all all trust\n"), 0))
	_, err = conn.Exec(t.Context(), `SELECT pg_reload_conf()`)
	check(t, err)
	check(t, conn.Close(t.Context()))

	u, err := url.Parse(cluster.URL("postgres"))
	check(t, err)
	u.User = url.UserPassword("me", secret)
	err = awaitRefusal(t, u.String())
	hides(t, err)
	if errors.Is(err, model.ErrUnavailable) {
		t.Errorf("%v is taken for an outage", err)
	}
}

// awaitRefusal pings until the server has read its new rules.
func awaitRefusal(t *testing.T, address string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		if err := ping(t, address); err != nil {
			return err
		}
	}
	t.Fatal("the server let a wrong password pass")
	return nil
}

func TestServerNameHasNoPassword(t *testing.T) {
	got := database.ServerName("postgres://me:" + secret + "@host:5433/db?sslmode=disable")
	if got != "me@host:5433/db" {
		t.Errorf("got %q", got)
	}
}

// Root may write anywhere, so what can't be written to is made of what is no
// folder, or of no disk.
func TestAFileThatCanNotBeADatabaseIsAnErrorThatNamesTheFlag(t *testing.T) {
	folder := t.TempDir()
	text := filepath.Join(folder, "notes.txt")
	check(t, os.WriteFile(text, []byte(strings.Repeat("these are my notes, no database\n", 100)), 0o644))
	short := filepath.Join(folder, "short.txt")
	check(t, os.WriteFile(short, []byte("notes\n"), 0o644))
	tests := map[string]struct {
		path   string
		create bool
	}{
		"a folder":                       {folder, true},
		"missing, and only to be read":   {filepath.Join(folder, "none.db"), false},
		"in a folder that is missing":    {filepath.Join(folder, "none", "a.db"), true},
		"below a file":                   {filepath.Join(text, "a.db"), true},
		"where nothing can be made":      {"/proc/a.db", true},
		"a text":                         {text, true},
		"a text, only to be read":        {text, false},
		"a text shorter than any header": {short, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			db, err := database.OpenSQLite(tt.path, tt.create, nil)
			if err == nil {
				check(t, database.Close(db))
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), "--database") || !strings.Contains(err.Error(), filepath.Dir(tt.path)) {
				t.Errorf("%q names not both the place and --database", err)
			}
			if errors.Is(err, model.ErrUnavailable) {
				t.Errorf("%v is taken for an outage", err)
			}
		})
	}
	for path, want := range map[string]int{text: 3200, short: 6} {
		if info, err := os.Stat(path); err != nil || info.Size() != int64(want) {
			t.Errorf("%s was changed: %v", path, err)
		}
	}
}

func TestAMissingFileIsMadeOnlyWhenAsked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "with space, ünï & 100%?#.db")
	if _, err := database.OpenSQLite(path, false, nil); err == nil {
		t.Fatal("a reading command made a database")
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("a file was left: %v", err)
	}
	db, err := database.OpenSQLite(path, true, nil)
	check(t, err)
	defer func() { check(t, database.Close(db)) }()
	check(t, db.Exec(`CREATE TABLE a (n integer)`).Error)
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	for pragma, want := range map[string]string{
		"journal_mode": "wal", "synchronous": "2", "busy_timeout": "10000", "foreign_keys": "1",
	} {
		var got string
		check(t, db.Raw(`PRAGMA `+pragma).Scan(&got).Error)
		if got != want {
			t.Errorf("%s is %s, want %s", pragma, got, want)
		}
	}
}
