package main

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/migrations"
)

func (a *app) migrateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate up|down|status",
		Short: "Make, take back or list windrow's tables",
		Long: `Windrow keeps everything in a schema of its own (--schema, default windrow; one
schema per job) on PostgreSQL; there the tables are made by 'windrow migrate up',
by a role that may create them. An SQLite file is brought up to date by itself.
Many may run this at once; they take turns.`,
		Example: `  export WINDROW_DATABASE_URL=postgres://me@db.example/mine
  windrow migrate up
  windrow migrate up --schema labels   # a second job in the same database`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usagef("migrate what? up, down or status")
		},
	}
	cmd.AddCommand(a.migrateUpCommand(), a.migrateDownCommand(), a.migrateStatusCommand())
	return cmd
}

func (a *app) migrateUpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "up",
		Short: "Make windrow's tables, or bring them up to date",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withMigrator(cmd.Context(), true, func(m *migrations.Migrator) error {
				steps, err := m.Up(cmd.Context())
				if err != nil {
					return err
				}
				for _, step := range steps {
					a.say("applied %s", step.Name)
				}
				if len(steps) == 0 {
					a.say("windrow's tables are up to date")
				} else {
					a.say("load rows:  %s", a.again("load FILE"))
				}
				return nil
			})
		},
	}
}

func (a *app) migrateDownCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Take the newest step back; the first one takes all rows and results with it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withMigrator(cmd.Context(), false, func(m *migrations.Migrator) error {
				return a.migrateDown(cmd.Context(), m, yes)
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "don't ask")
	withoutEnvironment(cmd.Flags(), "yes")
	return cmd
}

func (a *app) migrateDown(ctx context.Context, m *migrations.Migrator, yes bool) error {
	version, err := m.Version(ctx)
	if err != nil {
		return err
	}
	if version == 0 {
		a.say("there is nothing to take back")
		return nil
	}
	what := "what it added"
	if version == 1 {
		what = "all rows and results"
	}
	question := fmt.Sprintf("Step %d of windrow's tables is taken back, with %s.", version, what)
	if err := a.confirm(question, yes); err != nil {
		return err
	}
	steps, err := m.Down(ctx)
	for _, step := range steps {
		a.say("took back %s", step.Name)
	}
	return err
}

func (a *app) migrateStatusCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "List the steps and whether they are applied",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withMigrator(cmd.Context(), false, func(m *migrations.Migrator) error {
				steps, err := m.Status(cmd.Context())
				if err != nil {
					return err
				}
				if asJSON {
					return json.NewEncoder(a.stdout).Encode(steps)
				}
				table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
				for _, step := range steps {
					state := map[bool]string{true: "applied", false: "missing"}[step.Applied]
					fmt.Fprintf(table, "%d\t%s\t%s\n", step.Version, state, step.Name)
				}
				return table.Flush()
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, `print [{"version", "name", "applied"}]`)
	return cmd
}

// withMigrator opens the chosen database, where there need be no tables yet.
func (a *app) withMigrator(ctx context.Context, create bool, fn func(*migrations.Migrator) error) error {
	address := a.address()
	if isPostgres(address) {
		a.say("database: PostgreSQL, %s, schema %s", database.ServerName(address), a.schema)
		db, err := database.OpenPostgres(address, a.log)
		if err != nil {
			return err
		}
		defer database.Close(db)
		m, err := migrations.Postgres(db, a.schema)
		if err != nil {
			return usagef("%w", err)
		}
		return fn(m)
	}
	file, err := fileOf(address)
	if err != nil {
		return err
	}
	a.say("database: SQLite, %s", file)
	db, err := database.OpenSQLite(file, create, a.log)
	if err != nil {
		return err
	}
	defer database.Close(db)
	m, err := migrations.SQLite(db, file)
	if err != nil {
		return err
	}
	return fn(m)
}
