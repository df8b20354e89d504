package main

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/internal/job"
	"github.com/windrow-go/windrow/model"
)

// store is a job's tables as the commands use them.
type store interface {
	job.Store
	Count(ctx context.Context, sel checkout.Selection) (checkout.Counts, error)
	ByID(ctx context.Context, id int64) (model.Dataset, time.Time, error)
	ByKey(ctx context.Context, key string) (model.Dataset, time.Time, error)
	Failures(ctx context.Context, each func(checkout.Failure) error) error
	Overview(ctx context.Context, exact bool) (checkout.Overview, error)
	Verify(ctx context.Context, opts checkout.VerifyOptions) (checkout.Verification, error)
	Workers(ctx context.Context) (workers []model.Worker, now time.Time, err error)
	First(ctx context.Context, sel checkout.Selection, n int) ([]int64, error)
	Runs(ctx context.Context) ([]checkout.Run, error)
	RunLeft(ctx context.Context, run int64) (left int64, state checkout.RunState, err error)
	CancelRun(ctx context.Context, id int64, progress func(checkout.Run) error) (checkout.Run, error)
	History(ctx context.Context, id int64) ([]checkout.Former, error)
	Diff(ctx context.Context, run int64, samples int) (checkout.Diff, error)
	Add(ctx context.Context, row checkout.NewRow) (id int64, added bool, err error)
	Cancel(ctx context.Context, id int64) error
	Now(ctx context.Context) (time.Time, error)
	Pause(ctx context.Context, by string) error
	Resume(ctx context.Context) error
	Close() error
}

// defaultFile is the embedded database of all commands but run.
const defaultFile = "windrow.db"

// isPostgres tells an address from the name of a file.
func isPostgres(address string) bool {
	for _, prefix := range []string{"postgres://", "postgresql://", "host=", "service=", "dbname="} {
		if strings.HasPrefix(address, prefix) {
			return true
		}
	}
	return false
}

// fileOf is the file that an address other than PostgreSQL's names.
func fileOf(address string) (string, error) {
	file := strings.TrimPrefix(strings.TrimPrefix(address, "sqlite:"), "//")
	if strings.Contains(file, "://") {
		return "", usagef("--database %s: use a postgres:// address or the name of a file", beforeAt(address))
	}
	return file, nil
}

// address is the database chosen: typed, from the environment, or the default.
func (a *app) address() string {
	if a.database != "" {
		return a.database
	}
	return defaultFile
}

// open opens the chosen database; create allows a new file.
func (a *app) open(ctx context.Context, create bool) (store, error) {
	return a.openAt(ctx, a.address(), create)
}

func (a *app) openAt(ctx context.Context, address string, create bool) (store, error) {
	opts := checkout.Options{Schema: a.schema, Logger: a.log, OnConflict: a.metrics.Conflict}
	if isPostgres(address) {
		a.say("database: PostgreSQL, %s, schema %s", database.ServerName(address), a.schema)
		s, err := checkout.OpenPostgres(ctx, address, opts)
		if err != nil {
			return nil, err
		}
		a.metrics.Database("postgres", s, plainText)
		return s, nil
	}
	file, err := fileOf(address)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(file); create && err != nil {
		a.say("database: SQLite, new file %s", file)
	} else {
		a.say("database: SQLite, %s", file)
	}
	s, err := checkout.OpenSQLite(ctx, file, create, opts)
	if err != nil {
		return nil, err
	}
	a.metrics.Database("sqlite", s, plainText)
	return s, nil
}

// beforeAt keeps what may be shown of an address of unknown form.
func beforeAt(address string) string {
	scheme, _, _ := strings.Cut(address, "://")
	return scheme + "://…"
}

// again is a follow-up command on the same job, ready to paste. The address is left
// out where the environment has it, and where it has a password.
func (a *app) again(command string) string {
	s := "windrow " + command
	if a.schema != "windrow" && os.Getenv("WINDROW_SCHEMA") != a.schema {
		s += " --schema " + a.schema
	}
	if a.database == "" || os.Getenv("WINDROW_DATABASE_URL") == a.database {
		return s
	}
	if isPostgres(a.database) && database.HasPassword(a.database) {
		return s + " --database …"
	}
	return s + " --database " + quoteArg(a.database)
}

// quoteArg quotes s for a shell where that is needed.
func quoteArg(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+:=@%,") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
