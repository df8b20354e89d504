package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/mikestefanello/backlite"
)

// backliteRelease is the README's: when a task that was claimed and never answered
// for goes back to the queue.
const backliteRelease = 10 * time.Minute

// backliteQueue is backlite. It keeps no finished tasks: that would be one more
// insert for each.
type backliteQueue struct {
	db *sql.DB
}

// openBacklite opens the file with the README's driver and settings.
func openBacklite(ctx context.Context, address string) (queue, error) {
	db, err := openSQLite(ctx, address, "_journal=WAL&_timeout=5000")
	if err != nil {
		return nil, err
	}
	return &backliteQueue{db: db}, nil
}

// backliteTask gives job a queue. Its JSON is the job's.
type backliteTask struct{ job }

func (backliteTask) Config() backlite.QueueConfig {
	return backlite.QueueConfig{Name: "bench", MaxAttempts: 3, Backoff: time.Second}
}

func (q *backliteQueue) client(workers int) (*backlite.Client, error) {
	return backlite.NewClient(backlite.ClientConfig{
		DB:           q.db,
		Logger:       backliteErrors{},
		ReleaseAfter: backliteRelease,
		NumWorkers:   workers,
	})
}

func (q *backliteQueue) install(context.Context) error {
	client, err := q.client(1)
	if err != nil {
		return err
	}
	return client.Install()
}

func (q *backliteQueue) enqueue(ctx context.Context, jobs []job) error {
	client, err := q.client(1)
	if err != nil {
		return err
	}
	tasks := make([]backlite.Task, len(jobs))
	for i, j := range jobs {
		tasks[i] = backliteTask{j}
	}
	_, err = client.Add(tasks...).Ctx(ctx).Save()
	return err
}

func (q *backliteQueue) left(ctx context.Context) (n int64, err error) {
	err = q.db.QueryRowContext(ctx, `SELECT count(*) FROM backlite_tasks`).Scan(&n)
	return n, err
}

func (q *backliteQueue) work(ctx context.Context, workers int, handle func(job)) error {
	client, err := q.client(workers)
	if err != nil {
		return err
	}
	client.Register(backlite.NewQueue(func(_ context.Context, task backliteTask) error {
		handle(task.job)
		return nil
	}))
	lasting := context.WithoutCancel(ctx)
	client.Start(lasting)
	<-ctx.Done()
	patient, cancel := context.WithTimeout(lasting, stopTime)
	defer cancel()
	if !client.Stop(patient) {
		return errors.New("backlite did not stop in time")
	}
	return nil
}

// backliteErrors drops the line that backlite logs for each task.
type backliteErrors struct{}

func (backliteErrors) Info(string, ...any) {}

func (backliteErrors) Error(message string, args ...any) {
	fmt.Fprintln(os.Stderr, append([]any{"backlite:", message}, args...)...)
}

func (q *backliteQueue) close() error { return q.db.Close() }
