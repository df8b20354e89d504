package main

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/internal/topview"
	"github.com/windrow-go/windrow/model"
)

func (a *app) topCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "top",
		Short: "Watch the job on the full screen: progress, rate, workers, errors",
		Long: `Watch the job on the full screen, in a terminal of 40 columns and 10 lines or more:
how far it is, how fast it has been in the last five minutes, the rows by state, the
workers, and the commonest errors.

  q, Ctrl-C      quit                  arrows, PgUp,   scroll the workers, of
  p              pause the job, or     PgDn, Home,     which the fastest is first
                 resume it; asks       End
  e              read the errors       ?               help
                 again now

It looks at the job every second, as windrow status does; ≈ marks estimates. The
errors are read every 30 seconds, at most 20,000 rows of them: windrow errors reads
all. While the database does not answer, the last that was seen stays on the screen,
with the reason.

NO_COLOR=1 in the environment turns colours off. Where there is no terminal, use
windrow status --watch.`,
		Example: `  windrow top
  windrow top --database postgres://db.example.com/jobs`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !isTerminal(a.stdin) || !isTerminal(a.stdout) {
				return usagef("windrow top needs a terminal for input and output; without one: windrow status --watch")
			}
			a.log = zap.NewNop() // a line of the log would tear the screen
			s, err := a.open(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer s.Close()
			name, err := a.databaseName()
			if err != nil {
				return err
			}
			return topview.Run(cmd.Context(), topview.Options{Job: s, Name: name, By: whoAmI(), Explain: reasonOf})
		},
	}
}

// databaseName names the chosen database, without a password.
func (a *app) databaseName() (string, error) {
	address := a.address()
	if isPostgres(address) {
		return database.ServerName(address) + ", schema " + a.schema, nil
	}
	return fileOf(address)
}

// reasonOf is the part of plainText that is news: there is but a line for it, the
// database's name stands above, and that it does not answer is told beside it.
func reasonOf(err error) string {
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		return strings.TrimPrefix(connectText(connect), "can't connect to "+database.NameOf(connect.Config)+": ")
	}
	text := plainText(err)
	if _, cause, found := strings.Cut(text, model.ErrUnavailable.Error()+": "); found {
		return cause
	}
	return text
}
