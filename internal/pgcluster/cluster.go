package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// superuser is the role that owns everything in a cluster; no password.
const superuser = "postgres"

// startTimeout is how long a server may take until it answers; crash recovery on
// a loaded machine is the slowest case.
const startTimeout = time.Minute

// Cluster is one private server with its folder. Its methods may be called from
// several goroutines.
type Cluster struct {
	programs string
	folder   string
	port     int
	as       account
	guard    *guard

	mu     sync.Mutex
	server *process // nil: down
}

// Start makes a new cluster and returns once it accepts connections. The caller
// owes it a Stop. An error holds the end of the server's log.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	c, err := newCluster(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("start a private PostgreSQL: %w", err)
	}
	if err := c.create(ctx, options); err != nil {
		return nil, errors.Join(fmt.Errorf("start a private PostgreSQL: %w", err), c.Stop())
	}
	return c, nil
}

func newCluster(ctx context.Context, options Options) (*Cluster, error) {
	programs := options.Programs
	if programs == "" {
		found, err := Programs(ctx)
		if err != nil {
			return nil, err
		}
		programs = found
	}
	as, err := serverAccount()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp(options.Dir, "windrow-pg-")
	if err != nil {
		return nil, err
	}
	guard, err := newGuard(folder, filepath.Join(folder, "data", "postmaster.pid"))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	return &Cluster{programs: programs, folder: folder, as: as, guard: guard}, nil
}

// portTries bounds how often another port is tried when one was taken between
// the choice and its use.
const portTries = 5

func (c *Cluster) create(ctx context.Context, options Options) error {
	if err := c.initialise(ctx, options); err != nil {
		return err
	}
	for try := 1; ; try++ {
		port, err := freePort()
		if err != nil {
			return err
		}
		c.port = port
		err = c.launch(ctx)
		if err == nil || try == portTries || !strings.Contains(err.Error(), "Address already in use") {
			return err
		}
	}
}

// initialise makes the folder's contents: data, settings, a place for the socket.
func (c *Cluster) initialise(ctx context.Context, options Options) error {
	socket := filepath.Join(c.folder, "socket")
	if err := os.Mkdir(socket, 0o755); err != nil {
		return err
	}
	if err := c.as.own(c.folder, socket); err != nil {
		return err
	}
	args := []string{"-D", c.data(), "-U", superuser, "-A", "trust", "-E", "UTF8", "--locale=C"}
	if !options.Fsync {
		args = append(args, "--no-sync")
	}
	if err := c.run(ctx, "initdb", args...); err != nil {
		return err
	}
	return writeSettings(filepath.Join(c.data(), "postgresql.conf"), options.settings(c.folder))
}

// run runs one of PostgreSQL's programs to its end; what it said is in the error.
func (c *Cluster) run(ctx context.Context, name string, args ...string) error {
	log := filepath.Join(c.folder, name+".log")
	running, err := start(c.as, c.folder, log, filepath.Join(c.programs, name), args...)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := running.wait(ctx); err != nil {
		running.kill()
		return fmt.Errorf("%s: %w", name, err)
	}
	if !running.succeeded {
		return fmt.Errorf("%s ended with an error; %s", name, tail(log))
	}
	return nil
}

// launch starts the server and waits for its first answer. c.mu is not held by
// Start, which has the cluster for itself.
func (c *Cluster) launch(ctx context.Context) error {
	args := []string{"-D", c.data(), "-p", strconv.Itoa(c.port)}
	server, err := start(c.as, c.folder, c.Log(), filepath.Join(c.programs, "postgres"), args...)
	if err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	c.server = server
	if err := awaitServer(ctx, server, c.URL(superuser)); err != nil {
		server.kill()
		c.server = nil
		return fmt.Errorf("postgres: %w; %s", err, tail(c.Log()))
	}
	return nil
}

// awaitServer returns nil as soon as the server accepts a connection to the URL.
func awaitServer(ctx context.Context, server *process, databaseURL string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var last error
	gone := false
	err := poll(ctx, func() bool {
		gone = server.ended()
		if !gone {
			last = connects(ctx, databaseURL)
		}
		return gone || last == nil
	})
	if gone {
		return errors.New("the server ended while it was starting")
	}
	if err != nil {
		return fmt.Errorf("no connection yet: %w", errors.Join(err, last))
	}
	return nil
}

func connects(ctx context.Context, databaseURL string) error {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// URL names a database of this cluster, as its superuser, over TCP. It stays the
// same over Kill and Restart.
func (c *Cluster) URL(database string) string {
	return serverURL(c.port, database)
}

func serverURL(port int, database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.User(superuser),
		Host:     "127.0.0.1:" + strconv.Itoa(port),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Pid is the process id of the postmaster; 0 while the server is down.
func (c *Cluster) Pid() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server == nil || c.server.ended() {
		return 0
	}
	return c.server.pid
}

// Folder is where everything of the cluster lies.
func (c *Cluster) Folder() string { return c.folder }

// Log is the path of the server's log.
func (c *Cluster) Log() string { return filepath.Join(c.folder, "server.log") }

func (c *Cluster) data() string { return filepath.Join(c.folder, "data") }
