package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const (
	// riverConnections is the most that a working client needs by River's own
	// account: two to five.
	riverConnections = 5
	// riverFetchCooldown limits the throughput, its documentation says; this is
	// the least that River accepts.
	riverFetchCooldown = river.FetchCooldownMin
	// riverFetchPoll is what River's own benchmark uses. It matters little while
	// there are jobs: a full fetch is followed by the next one after the cooldown.
	riverFetchPoll = 20 * time.Millisecond
	// stopTime is how long a peer's client may take to stop.
	stopTime = 20 * time.Second
)

// riverQueue is River, with its default completer, which completes in batches.
type riverQueue struct {
	pool *pgxpool.Pool
}

func openRiver(ctx context.Context, address string) (queue, error) {
	pool, err := openPool(ctx, address, riverConnections, riverConnections)
	if err != nil {
		return nil, err
	}
	return &riverQueue{pool: pool}, nil
}

// riverJob gives job a kind. Its JSON is the job's.
type riverJob struct{ job }

func (riverJob) Kind() string { return "bench" }

type riverWorker struct {
	river.WorkerDefaults[riverJob]
	handle func(job)
}

func (w *riverWorker) Work(_ context.Context, j *river.Job[riverJob]) error {
	w.handle(j.Args.job)
	return nil
}

// riverLogger replaces River's default, which writes to the standard output.
func riverLogger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func (q *riverQueue) install(ctx context.Context) error {
	migrator, err := rivermigrate.New(riverpgxv5.New(q.pool), &rivermigrate.Config{Logger: riverLogger()})
	if err != nil {
		return err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

func (q *riverQueue) enqueue(ctx context.Context, jobs []job) error {
	client, err := river.NewClient(riverpgxv5.New(q.pool), &river.Config{Logger: riverLogger()})
	if err != nil {
		return err
	}
	params := make([]river.InsertManyParams, len(jobs))
	for i, j := range jobs {
		params[i].Args = riverJob{j}
	}
	_, err = client.InsertManyFast(ctx, params)
	return err
}

// left counts by the index from which River fetches, which gets cheaper towards the
// end; the planner, which takes all jobs for available, would read the whole table.
func (q *riverQueue) left(ctx context.Context) (n int64, err error) {
	err = pgx.BeginFunc(ctx, q.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL enable_seqscan = off`); err != nil {
			return err
		}
		return tx.QueryRow(ctx, riverLeftSQL).Scan(&n)
	})
	return n, err
}

const riverLeftSQL = `
SELECT count(*)
FROM river_job
WHERE state IN ('available', 'pending', 'retryable', 'running', 'scheduled')`

func (q *riverQueue) once(ctx context.Context) (n int64, err error) {
	err = q.pool.QueryRow(ctx, riverOnceSQL).Scan(&n)
	return n, err
}

const riverOnceSQL = `
SELECT count(DISTINCT args ->> 'i')
FROM river_job
WHERE state = 'completed'
	AND attempt = 1`

func (q *riverQueue) work(ctx context.Context, workers int, handle func(job)) error {
	registered := river.NewWorkers()
	river.AddWorker(registered, &riverWorker{handle: handle})
	client, err := river.NewClient(riverpgxv5.New(q.pool), riverConfig(workers, registered))
	if err != nil {
		return err
	}
	return runRiver(ctx, client)
}

func riverConfig(workers int, registered *river.Workers) *river.Config {
	return &river.Config{
		FetchCooldown:     riverFetchCooldown,
		FetchPollInterval: riverFetchPoll,
		Logger:            riverLogger(),
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}},
		Workers:           registered,
	}
}

// runRiver stops the client in order; ending the context of Start would cancel jobs.
func runRiver(ctx context.Context, client *river.Client[pgx.Tx]) error {
	lasting := context.WithoutCancel(ctx)
	if err := client.Start(lasting); err != nil {
		return err
	}
	<-ctx.Done()
	patient, cancel := context.WithTimeout(lasting, stopTime)
	defer cancel()
	if err := client.Stop(patient); err != nil {
		return errors.Join(errors.New("stop River's client"), err)
	}
	return nil
}

func (q *riverQueue) close() error {
	q.pool.Close()
	return nil
}
