package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/mattn/go-sqlite3" // both SQLite peers' documentation has this driver

	"github.com/windrow-go/windrow/bench"
	"github.com/windrow-go/windrow/internal/pgcluster"
)

// database is what a peer keeps its jobs in, for one run.
type database interface {
	// address is what a peer's open takes.
	address() string
	// settle is done when all jobs are in, before anything is measured.
	settle(ctx context.Context) error
	// describe says what is measured.
	describe(ctx context.Context) (bench.Server, error)
	// spent is what the server has used and written so far.
	spent(ctx context.Context) (spending, error)
	// remove ends the server, if there is one, and deletes everything.
	remove() error
}

// spending is a reading of a server's meters; zeros where there are none.
type spending struct {
	cpu time.Duration
	wal int64 // bytes
}

// setting is where a peer is measured.
type setting struct {
	postgres map[string]string // lines of postgresql.conf
	full     bool              // SQLite waits for the disk at each commit
}

func newDatabase(ctx context.Context, engine string, s setting) (database, error) {
	if engine == engineSQLite {
		folder, err := os.MkdirTemp("", "windrow-peers-")
		return sqliteFile{folder: folder, full: s.full}, err
	}
	return startPostgres(ctx, s.postgres)
}

// sqliteFile is a file in a folder of its own.
type sqliteFile struct {
	folder string
	full   bool
}

// synchronousFull is SQLite's number for it.
const synchronousFull = "2"

// address is a data source name to which settings can be added. NORMAL is the
// driver's default in WAL mode: it syncs at checkpoints only.
func (f sqliteFile) address() string {
	synchronous := "NORMAL"
	if f.full {
		synchronous = "FULL"
	}
	return "file:" + filepath.Join(f.folder, "jobs.db") + "?_synchronous=" + synchronous
}

func (f sqliteFile) settle(ctx context.Context) error {
	db, err := openSQLite(ctx, f.address(), "_timeout=5000")
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
	return err
}

// describe reads the settings from a connection of its own: the journal's mode is
// kept in the file, and the rest in the address.
func (f sqliteFile) describe(ctx context.Context) (bench.Server, error) {
	s := bench.Server{Engine: engineSQLite, Settings: map[string]string{}}
	db, err := openSQLite(ctx, f.address(), "_timeout=5000")
	if err != nil {
		return s, err
	}
	defer db.Close()
	for _, name := range []string{"journal_mode", "synchronous"} {
		var value string
		if err := db.QueryRowContext(ctx, `PRAGMA `+name).Scan(&value); err != nil {
			return s, err
		}
		s.Settings[name] = value
	}
	err = db.QueryRowContext(ctx, `SELECT sqlite_version()`).Scan(&s.Version)
	return s, err
}

func (f sqliteFile) spent(context.Context) (spending, error) { return spending{}, nil }

func (f sqliteFile) remove() error { return os.RemoveAll(f.folder) }

func openSQLite(ctx context.Context, address, settings string) (*sql.DB, error) {
	db, err := sql.Open("sqlite3", address+"&"+settings)
	if err != nil {
		return nil, err
	}
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// postgres is a private server.
type postgres struct {
	cluster *pgcluster.Cluster
	conn    *pgx.Conn
}

func startPostgres(ctx context.Context, settings map[string]string) (*postgres, error) {
	cluster, err := pgcluster.Start(ctx, pgcluster.Options{Fsync: true, Settings: settings})
	if err != nil {
		return nil, err
	}
	conn, err := pgx.Connect(ctx, cluster.URL("postgres"))
	if err != nil {
		return nil, errors.Join(err, cluster.Stop())
	}
	return &postgres{cluster: cluster, conn: conn}, nil
}

func (p *postgres) address() string { return p.cluster.URL("postgres") }

// settle leaves nothing of the filling to be done while measuring.
func (p *postgres) settle(ctx context.Context) error {
	for _, statement := range []string{`VACUUM (ANALYZE)`, `CHECKPOINT`} {
		if _, err := p.conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func (p *postgres) describe(ctx context.Context) (bench.Server, error) {
	s := bench.Server{Engine: enginePostgres, Settings: map[string]string{}}
	rows, err := p.conn.Query(ctx, settingsSQL, []string{
		"server_version", "shared_buffers", "max_wal_size", "max_connections", "fsync", "synchronous_commit",
		"full_page_writes", "wal_level", "autovacuum", "huge_pages", "default_transaction_isolation",
	})
	if err != nil {
		return s, err
	}
	var name, value string
	_, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error {
		s.Settings[name] = value
		return nil
	})
	s.Version = s.Settings["server_version"]
	delete(s.Settings, "server_version")
	return s, err
}

const settingsSQL = `
SELECT
	name,
	current_setting(name)
FROM pg_settings
WHERE name = ANY ($1)`

func (p *postgres) spent(ctx context.Context) (spending, error) {
	s := spending{cpu: bench.ServerTime(p.cluster.Pid())}
	err := p.conn.QueryRow(ctx, `SELECT CAST(pg_current_wal_lsn() - '0/0' AS bigint)`).Scan(&s.wal)
	return s, err
}

func (p *postgres) remove() error {
	return errors.Join(p.conn.Close(context.Background()), p.cluster.Stop())
}

// openPool opens a pool with some connections already made, so that making them is
// not measured.
func openPool(ctx context.Context, address string, made, most int) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, err
	}
	config.MaxConns = int32(most)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := makeConnections(ctx, pool, made); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

func makeConnections(ctx context.Context, pool *pgxpool.Pool, n int) error {
	for range n {
		conn, err := pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release() // after the last has been made
	}
	return nil
}

// moduleFile reads a file of a dependency, in the version that is compiled in: some
// queues ship their tables as a file for the user to run.
func moduleFile(ctx context.Context, module, name string) (string, error) {
	var stderr bytes.Buffer
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module)
	list.Stderr = &stderr
	folder, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("find %s of %s (run this program in its own folder): %w: %s",
			name, module, err, bytes.TrimSpace(stderr.Bytes()))
	}
	text, err := os.ReadFile(filepath.Join(string(bytes.TrimSpace(folder)), name))
	return string(text), err
}
