package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/vgarvardt/gue/v5"
	"github.com/vgarvardt/gue/v5/adapter/pgxv5"
)

const (
	gueModule = "github.com/vgarvardt/gue/v5"
	gueType   = "bench"
	// gueConnections is the most that --workers can use at once: a worker holds a
	// transaction for as long as it has a job.
	gueConnections = 100
	// gueMade connections are there from the start, as many as the default workers.
	gueMade = 8
	// guePoll is the sleep after finding nothing. The default of 5 s would be felt
	// only at the end, and there unfairly.
	guePoll = 20 * time.Millisecond
)

// gueQueue is gue: each worker locks, works and deletes one job in one transaction.
type gueQueue struct {
	pool   *pgxpool.Pool
	client *gue.Client
}

func openGue(ctx context.Context, address string) (queue, error) {
	pool, err := openPool(ctx, address, gueMade, gueConnections)
	if err != nil {
		return nil, err
	}
	client, err := gue.NewClient(pgxv5.NewConnPool(pool))
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &gueQueue{pool: pool, client: client}, nil
}

func (q *gueQueue) install(ctx context.Context) error {
	schema, err := moduleFile(ctx, gueModule, "migrations/schema.sql")
	if err != nil {
		return err
	}
	_, err = q.pool.Exec(ctx, schema)
	return err
}

func (q *gueQueue) enqueue(ctx context.Context, jobs []job) error {
	batch := make([]*gue.Job, len(jobs))
	for i, j := range jobs {
		text, err := j.encode()
		if err != nil {
			return err
		}
		batch[i] = &gue.Job{Type: gueType, Args: text}
	}
	return q.client.EnqueueBatch(ctx, batch)
}

func (q *gueQueue) left(ctx context.Context) (n int64, err error) {
	err = q.pool.QueryRow(ctx, `SELECT count(*) FROM gue_jobs`).Scan(&n)
	return n, err
}

func (q *gueQueue) work(ctx context.Context, workers int, handle func(job)) error {
	workMap := gue.WorkMap{gueType: func(_ context.Context, j *gue.Job) error {
		decoded, err := decodeJob(j.Args)
		if err == nil {
			handle(decoded)
		}
		return err
	}}
	// The default strategy orders by priority, which no index serves: it would sort
	// all jobs to find one.
	pool, err := gue.NewWorkerPool(q.client, workMap, workers,
		gue.WithPoolPollStrategy(gue.RunAtPollStrategy),
		gue.WithPoolPollInterval(guePoll),
		gue.WithPoolGracefulShutdown(nil),
		gue.WithPoolHooksJobLocked(sayGueError),
		gue.WithPoolHooksJobUndone(sayGueError),
	)
	if err != nil {
		return err
	}
	return pool.Run(ctx)
}

func sayGueError(_ context.Context, _ *gue.Job, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "gue:", err)
	}
}

func (q *gueQueue) close() error {
	q.pool.Close()
	return nil
}
