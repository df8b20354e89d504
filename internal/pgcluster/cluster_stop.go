package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// stopTimeout is how long each of the ways to stop a server may take before the
// next, harder one.
const stopTimeout = 10 * time.Second

// Kill ends the server and every process of its own by SIGKILL, as a crash would,
// and returns when the last one is gone. The data stays; Restart recovers it.
// Nothing to do when the server is down.
func (c *Cluster) Kill() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server == nil {
		return nil
	}
	if err := killTree(c.server); err != nil {
		return fmt.Errorf("kill the private PostgreSQL: %w", err)
	}
	c.server = nil
	return nil
}

// killTree freezes the parent first, so that no child is missed. Children are
// killed by name, because each of PostgreSQL's leads a session of its own, and
// one amid a long statement would outlive the postmaster by a while.
func killTree(server *process) error {
	server.freeze()
	backends, err := children(server.pid)
	server.kill()
	if err != nil {
		return err
	}
	for _, pid := range backends {
		// ESRCH: it noticed the postmaster's death by itself.
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return awaitGone(backends)
}

func awaitGone(pids []int) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	var left []int
	var broken error
	err := poll(ctx, func() bool {
		left, broken = alive(pids)
		return broken != nil || len(left) == 0
	})
	if err != nil {
		return fmt.Errorf("processes %v are still there: %w", left, err)
	}
	return broken
}

// Restart starts a server that is down, on the same port and data, and returns
// once it accepts connections.
func (c *Cluster) Restart(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server != nil && !c.server.ended() {
		return errors.New("restart the private PostgreSQL: it still runs; Kill or StopFast comes first")
	}
	if err := c.launch(ctx); err != nil {
		return fmt.Errorf("restart the private PostgreSQL: %w", err)
	}
	return nil
}

// StopFast shuts the server down in order, cutting its connections off, and
// returns when it is down. The data stays. Nothing to do when it is down already.
func (c *Cluster) StopFast(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server == nil {
		return nil
	}
	c.server.signal(syscall.SIGINT)
	if err := c.server.wait(ctx); err != nil {
		return fmt.Errorf("stop the private PostgreSQL: %w", err)
	}
	c.server = nil
	return nil
}

// Keep makes Stop leave the folder, with its data and log, where it is.
func (c *Cluster) Keep() error {
	return os.WriteFile(filepath.Join(c.folder, keepFile), nil, 0o644)
}

// Stop ends the server, at once rather than in order since its data is thrown
// away, and removes the folder (see Keep). The cluster is of no use afterwards.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.guard == nil {
		return nil
	}
	if c.server != nil {
		stopHard(c.server, c.stopSignals()...)
		c.server = nil
	}
	err := errors.Join(c.guard.dismiss(), removeFolder(c.folder))
	c.guard = nil
	if err != nil {
		return fmt.Errorf("stop the private PostgreSQL: %w", err)
	}
	return nil
}

// stopSignals: a folder that is kept is worth an orderly shutdown.
func (c *Cluster) stopSignals() []syscall.Signal {
	if _, err := os.Stat(filepath.Join(c.folder, keepFile)); err == nil {
		return []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT}
	}
	return []syscall.Signal{syscall.SIGQUIT}
}

// stopHard sends one signal after the other, until the process is over.
func stopHard(server *process, signals ...syscall.Signal) {
	for _, signal := range signals {
		server.signal(signal)
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		err := server.wait(ctx)
		cancel()
		if err == nil {
			return
		}
	}
	server.kill()
}
