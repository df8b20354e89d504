package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// Engines on which peers keep their jobs.
const (
	enginePostgres = "PostgreSQL"
	engineSQLite   = "SQLite"
)

// peer is somebody else's queue in one of its uses.
type peer struct {
	name      string // what --peer calls it
	subject   string // what its results call it
	engine    string
	rows      int // how many it is given unless asked otherwise: what it does in under a minute or two
	processes int
	workers   int // in each process
	// open returns the queue at a PostgreSQL URL or a SQLite data source name.
	open func(ctx context.Context, address string) (queue, error)
}

// peers are all of them; the README says where their settings come from.
func peers() []peer {
	return []peer{
		{name: "river", subject: "river", engine: enginePostgres, rows: 200_000, processes: 1, workers: 1_000, open: openRiver},
		{name: "river-small", subject: "river", engine: enginePostgres, rows: 20_000, processes: 40, workers: 1, open: openRiver},
		{name: "gue", subject: "gue", engine: enginePostgres, rows: 50_000, processes: 1, workers: 8, open: openGue},
		{name: "goqite", subject: "goqite", engine: engineSQLite, rows: 50_000, processes: 1, workers: 40, open: openGoqite},
		{name: "backlite", subject: "backlite", engine: engineSQLite, rows: 20_000, processes: 1, workers: 40, open: openBacklite},
	}
}

func choose(name string) ([]peer, error) {
	all := peers()
	if name == "all" {
		return all, nil
	}
	var names []string
	for _, p := range all {
		if p.name == name {
			return []peer{p}, nil
		}
		names = append(names, p.name)
	}
	return nil, fmt.Errorf("no peer is called %q; there are %s, and all", name, strings.Join(names, ", "))
}

// queue is a peer's queue on one database.
type queue interface {
	// install makes the queue's tables.
	install(ctx context.Context) error
	// enqueue adds jobs, all in one transaction.
	enqueue(ctx context.Context, jobs []job) error
	// left counts the jobs that the database does not show as finished.
	left(ctx context.Context) (int64, error)
	// work hands jobs to handle, until the context ends and jobs in hand are
	// finished.
	work(ctx context.Context, workers int, handle func(job)) error
	// close ends the connections.
	close() error
}

// keeper is a queue that keeps finished jobs, and so can say more of them.
type keeper interface {
	// once counts the distinct numbers of jobs that the database shows as finished
	// at their first try.
	once(ctx context.Context) (int64, error)
}

// job is a row of the benchmark. It does nothing.
type job struct {
	Number int    `json:"i"` // from 0 on, to tell whether all were worked, and once
	Pad    string `json:"pad"`
}

// newJobs makes jobs whose JSON has some bytes each, or a few more.
func newJobs(from, to, bytes int) []job {
	const overhead = len(`{"i":100000,"pad":""}`)
	pad := strings.Repeat("x", max(bytes-overhead, 0))
	jobs := make([]job, 0, to-from)
	for number := from; number < to; number++ {
		jobs = append(jobs, job{Number: number, Pad: pad})
	}
	return jobs
}

// encode is for queues that take bytes.
func (j job) encode() ([]byte, error) { return json.Marshal(j) }

func decodeJob(text []byte) (j job, err error) {
	err = json.Unmarshal(text, &j)
	return j, err
}
