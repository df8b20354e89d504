package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// ErrNoPooler says that pgbouncer is not on this machine.
var ErrNoPooler = errors.New("pgbouncer is not to be found in PATH or /usr/sbin: install it (apt-get install pgbouncer)")

// Pooler is a pgbouncer in transaction mode in front of a cluster: each
// transaction may run on another server connection than the one before, and
// session state (SET, prepared statements, session locks) is lost in between.
type Pooler struct {
	folder string
	port   int
	server *process
	guard  *guard
}

// poolerConfig leaves everything but the mode at pgbouncer's defaults, which
// users have too: above all, it refuses startup parameters that it doesn't know.
// Two server connections for each database make clients share them.
const poolerConfig = `[databases]
* = host=127.0.0.1 port=%d
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = trust
auth_file = %s
pidfile = %s
pool_mode = transaction
default_pool_size = 2
max_client_conn = 200
`

// StartPooler starts a pooler in front of a cluster and returns once it passes a
// connection on. The caller owes it a Stop, before the cluster's.
func StartPooler(ctx context.Context, c *Cluster) (*Pooler, error) {
	p, err := newPooler()
	if err != nil {
		return nil, fmt.Errorf("start a pooler: %w", err)
	}
	if err := p.launch(ctx, c); err != nil {
		return nil, errors.Join(fmt.Errorf("start a pooler: %w", err), p.Stop())
	}
	return p, nil
}

func newPooler() (*Pooler, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "windrow-pooler-")
	if err != nil {
		return nil, err
	}
	guard, err := newGuard(folder, filepath.Join(folder, "pid"))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	return &Pooler{folder: folder, port: port, guard: guard}, nil
}

func (p *Pooler) launch(ctx context.Context, c *Cluster) error {
	program, err := poolerProgram()
	if err != nil {
		return err
	}
	config, err := p.writeConfig(c)
	if err != nil {
		return err
	}
	log := filepath.Join(p.folder, "log")
	p.server, err = start(c.as, p.folder, log, program, config)
	if err != nil {
		return err
	}
	if err := awaitServer(ctx, p.server, p.URL(superuser)); err != nil {
		return fmt.Errorf("pgbouncer: %w; %s", err, tail(log))
	}
	return nil
}

func poolerProgram() (string, error) {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if found, err := exec.LookPath(name); err == nil {
			return found, nil
		}
	}
	return "", ErrNoPooler
}

func (p *Pooler) writeConfig(c *Cluster) (string, error) {
	config := filepath.Join(p.folder, "pgbouncer.ini")
	users := filepath.Join(p.folder, "users")
	text := fmt.Sprintf(poolerConfig, c.port, p.port, users, filepath.Join(p.folder, "pid"))
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return "", err
	}
	if err := os.WriteFile(users, []byte(strconv.Quote(superuser)+` ""`+"\n"), 0o644); err != nil {
		return "", err
	}
	return config, c.as.own(p.folder, config, users)
}

// URL names a database of the cluster through the pooler, as the superuser. It
// asks for no particular way to execute queries: a client that prepares
// statements by name is in for trouble here, as with a user's pooler.
func (p *Pooler) URL(database string) string {
	return serverURL(p.port, database)
}

// Stop ends the pooler and removes its folder.
func (p *Pooler) Stop() error {
	if p.server != nil {
		stopHard(p.server, syscall.SIGTERM)
	}
	if err := errors.Join(p.guard.dismiss(), os.RemoveAll(p.folder)); err != nil {
		return fmt.Errorf("stop the pooler: %w", err)
	}
	return nil
}
