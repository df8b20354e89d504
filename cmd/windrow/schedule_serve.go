package main

import (
	"os"

	"github.com/spf13/cobra"
)

func (a *app) scheduleServeCommand() *cobra.Command {
	var f schedulerFlags
	cmd := &cobra.Command{
		Use:   "serve --allow-commands",
		Short: "Start runs as they come due, until stopped",
		Long: `Start runs as they come due, until stopped. It sleeps until the next due time, and
is woken at once by 'add' and 'run-now' (behind a pooler in transaction mode it
looks every five seconds instead). Start as many as you like, on as many machines
as you like: one takes each run. Commands run as the daemon's user, in its working
directory and with its environment, on whichever machine takes the run.

The first SIGTERM or Ctrl-C lets the runs that go on end (--grace), then all their
processes are stopped; the second ends at once.`,
		Example: `  windrow schedule serve --allow-commands
  windrow schedule serve --allow-commands -j 2 --grace 10m`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, closeAll, err := a.scheduler(cmd.Context(), f)
			if err != nil {
				return err
			}
			defer closeAll()
			if here, err := os.Getwd(); err == nil {
				a.say("serving schedules; commands run as %s in %s", whoAmI(), here)
			}
			return s.Serve(cmd.Context())
		},
	}
	f.add(cmd.Flags())
	return cmd
}
