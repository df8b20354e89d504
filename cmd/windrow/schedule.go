package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata" // for machines without time zones of their own

	"github.com/spf13/cobra"

	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/schedule"
)

func (a *app) scheduleCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schedule add | list | show | run-now | history | ...",
		Short: "Regular and on-demand operations, one instance at a time",
		Long: `Run operations at regular times, or when somebody asks for them, one instance of
each at a time, on as many machines as you like. The database is the go-between:
add schedules to it, and have them run by one or more daemons ('schedule serve'),
by cron ('schedule tick' every minute), or both.

Whoever may insert a schedule may have a command run. So commands run only where
the daemon or the tick is started with --allow-commands: as its user, in its
working directory, with its environment. docs/scheduling.md has the rules.`,
		Example: `  windrow schedule add nightly --cron '0 3 * * *' --timezone Europe/Warsaw -- ./nightly.sh
  windrow schedule add retry --every 15m -- windrow reprocess --failed
  windrow schedule serve --allow-commands
  windrow schedule run-now nightly
  windrow schedule history nightly`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usagef("schedule what? See '%s --help'", cmd.CommandPath())
		},
	}
	cmd.AddCommand(a.scheduleAddCommand(), a.scheduleListCommand(), a.scheduleShowCommand(),
		a.schedulePauseCommand(), a.scheduleResumeCommand(), a.scheduleRemoveCommand(),
		a.scheduleHistoryCommand(), a.scheduleRunNowCommand(), a.scheduleCancelCommand(),
		a.scheduleTickCommand(), a.scheduleServeCommand())
	return cmd
}

// openSchedules opens the schedules of the chosen database; create allows a new file.
func (a *app) openSchedules(ctx context.Context, create bool) (schedule.Store, error) {
	opts := schedule.StoreOptions{Schema: a.schema, Logger: a.log}
	address := a.address()
	if isPostgres(address) {
		a.say("database: PostgreSQL, %s, schema %s", database.ServerName(address), a.schema)
		s, err := schedule.OpenPostgres(ctx, address, opts)
		if err != nil {
			return nil, err
		}
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
	s, err := schedule.OpenSQLite(ctx, file, create, opts)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// databaseVariables are what a scheduled windrow command needs to find this database,
// wherever it runs.
func (a *app) databaseVariables() ([]string, error) {
	address := a.address()
	if isPostgres(address) {
		return []string{"WINDROW_DATABASE_URL=" + address, "WINDROW_SCHEMA=" + a.schema}, nil
	}
	file, err := fileOf(address)
	if err != nil {
		return nil, err
	}
	file, err = filepath.Abs(file)
	if err != nil {
		return nil, fmt.Errorf("the database's folder: %w", err)
	}
	return []string{"WINDROW_DATABASE_URL=" + file}, nil
}

// withSchedule runs a command about the one schedule that its argument names.
func (a *app) withSchedule(do func(ctx context.Context, s schedule.Store, name string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usagef("which schedule? Name one")
		}
		s, err := a.openSchedules(cmd.Context(), false)
		if err != nil {
			return err
		}
		defer s.Close()
		return do(cmd.Context(), s, args[0])
	}
}
