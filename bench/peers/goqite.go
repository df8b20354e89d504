package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"maragu.dev/goqite"
	"maragu.dev/goqite/jobs"
)

const (
	goqiteModule = "maragu.dev/goqite"
	goqiteJob    = "bench"
	// goqitePoll is the README's. The runner sleeps it, too, when all its slots
	// are taken.
	goqitePoll = 10 * time.Millisecond
)

// goqiteQueue is goqite with its job runner.
type goqiteQueue struct {
	db    *sql.DB
	queue *goqite.Queue
}

// openGoqite opens the file with the README's driver, settings and one connection.
func openGoqite(ctx context.Context, address string) (queue, error) {
	db, err := openSQLite(ctx, address, "_journal=WAL&_timeout=5000&_fk=true")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)
	return &goqiteQueue{db: db, queue: goqite.New(goqite.NewOpts{DB: db, Name: "jobs"})}, nil
}

func (q *goqiteQueue) install(ctx context.Context) error {
	schema, err := moduleFile(ctx, goqiteModule, "schema_sqlite.sql")
	if err != nil {
		return err
	}
	_, err = q.db.ExecContext(ctx, schema)
	return err
}

func (q *goqiteQueue) enqueue(ctx context.Context, batch []job) (err error) {
	tx, err := q.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tx.Rollback())
		}
	}()
	for _, j := range batch {
		text, err := j.encode()
		if err != nil {
			return err
		}
		if _, err := jobs.CreateTx(ctx, tx, q.queue, goqiteJob, goqite.Message{Body: text}); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (q *goqiteQueue) left(ctx context.Context) (n int64, err error) {
	err = q.db.QueryRowContext(ctx, `SELECT count(*) FROM goqite`).Scan(&n)
	return n, err
}

func (q *goqiteQueue) work(ctx context.Context, workers int, handle func(job)) error {
	runner := jobs.NewRunner(jobs.NewRunnerOpts{
		Limit:        workers,
		Log:          goqiteErrors{},
		PollInterval: goqitePoll,
		Queue:        q.queue,
	})
	runner.Register(goqiteJob, func(_ context.Context, text []byte) error {
		decoded, err := decodeJob(text)
		if err == nil {
			handle(decoded)
		}
		return err
	})
	runner.Start(ctx)
	return nil
}

// goqiteErrors lets through what matters of a log that has lines for each job, all
// at one level.
type goqiteErrors struct{}

func (goqiteErrors) Info(message string, args ...any) {
	if strings.HasPrefix(message, "Error") {
		fmt.Fprintln(os.Stderr, append([]any{"goqite:", message}, args...)...)
	}
}

func (q *goqiteQueue) close() error { return q.db.Close() }
