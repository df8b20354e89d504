package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/windrow-go/windrow/schedule"
)

func (a *app) scheduleRunNowCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "run-now NAME",
		Short: "Enter an on-demand run and print its id",
		Long: `Enter an on-demand run: a daemon that serves starts it at once, a tick the next
time. If the lock is held, it waits. Refused if an on-demand run of that schedule is
waiting already. The schedule's regular times are not affected.`,
		Example: `  run=$(windrow schedule run-now nightly)
  windrow schedule show --run $run`,
		RunE: a.withSchedule(func(ctx context.Context, s schedule.Store, name string) error {
			run, err := s.RunNow(ctx, name, whoAmI())
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if asJSON {
				return json.NewEncoder(a.stdout).Encode(run)
			}
			fmt.Fprintln(a.stdout, run.ID)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the run as history --json does")
	return cmd
}

func (a *app) scheduleCancelCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "cancel RUN",
		Short: "Cancel a waiting run, or stop one that goes on",
		Long: `Cancel a run by its id. One that waits ends at once, and the schedule goes on with
the time after it. One that goes on is told to stop: all its processes get SIGTERM
and, two seconds later, SIGKILL.`,
		Example: `  windrow schedule cancel 17`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return usagef("cancel which run? %q is no run's id; 'windrow schedule list' and 'history' show them", args[0])
			}
			s, err := a.openSchedules(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer s.Close()
			run, err := s.Cancel(cmd.Context(), id, whoAmI())
			switch {
			case err != nil:
				return err
			case asJSON:
				return json.NewEncoder(a.stdout).Encode(run)
			case run.State == schedule.Running:
				fmt.Fprintf(a.stdout, "run %d goes on on %s, and was asked to stop\n", id, run.Holder)
			default:
				fmt.Fprintf(a.stdout, "run %d is cancelled\n", id)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the run as history --json does")
	return cmd
}
