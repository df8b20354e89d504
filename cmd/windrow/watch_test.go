package main_test

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"
)

// statusLine is what status --json documents.
type statusLine struct {
	Done     int64   `json:"done"`
	InFlight int64   `json:"in_flight"`
	Rate     float64 `json:"rate"`
	Workers  int     `json:"live_workers"`
	PausedBy string  `json:"paused_by"`
}

// workerLine is some of what workers --json documents.
type workerLine struct {
	State    string `json:"state"`
	PID      int    `json:"pid"`
	Version  string `json:"version"`
	InFlight int    `json:"in_flight"`
	Done     int64  `json:"done"`
}

func TestTheFleetIsSeenPausedAndResumed(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		p.load(400)
		worker := p.start("work", "--exec", "sleep 0.05", "-j", "2", "--handler-version", "v7")
		status := func() (s statusLine) {
			t.Helper()
			if err := json.Unmarshal([]byte(p.ok("status", "--json").stdout), &s); err != nil {
				t.Fatal(err)
			}
			return s
		}
		eventually(t, "a live worker and results", func() bool { s := status(); return s.Workers == 1 && s.Done > 0 && s.Rate > 0 })
		p.ok("status").prints("rows/s over the last minute, by 1 worker")
		p.ok("workers").prints("live", "v7")

		p.ok("pause")
		eventually(t, "nothing in flight", func() bool { s := status(); return s.InFlight == 0 && s.PausedBy != "" })
		before := status()
		if time.Sleep(1500 * time.Millisecond); status().Done != before.Done || before.Done == 400 {
			t.Errorf("while paused, %d done became %d", before.Done, status().Done)
		}
		p.ok("status").prints("paused by")
		p.run("resume").wants(0, "resumed")
		eventually(t, "more results", func() bool { return status().Done > before.Done })
		p.run("resume").wants(0, "not paused")

		worker.signal(syscall.SIGTERM)
		worker.end().wants(0)
		p.ok("workers").prints("stopped")
		p.ok("status").prints("no worker is at work")
		var line workerLine
		if err := json.Unmarshal([]byte(p.ok("workers", "--json").stdout), &line); err != nil {
			t.Fatal(err)
		}
		if line.State != "stopped" || line.Done != status().Done || line.PID == 0 || line.InFlight != 0 || line.Version != "v7" {
			t.Errorf("%+v", line)
		}
	})
}

func TestASlowedWorkerIsSeen(t *testing.T) {
	p := newPlace(t)
	p.load(50)
	worker := p.start("work", "--http", "http://127.0.0.1:1/", "-j", "2")
	defer worker.kill()
	eventually(t, "a slowed worker", func() bool { return strings.Contains(p.ok("status").stdout, "slowed down: ") })
	p.ok("status", "--json").prints(`"slowed_workers":1`)
	p.ok("workers").prints("slowed", "refused")
}
