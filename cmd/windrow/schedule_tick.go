package main

import (
	"context"
	"errors"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/windrow-go/windrow/schedule"
)

// exitNothingDue says, on request, that there was nothing to do.
const exitNothingDue = 4

// schedulerFlags are those of schedule tick and serve.
type schedulerFlags struct {
	allowCommands bool
	concurrency   int
	grace         time.Duration
}

func (f *schedulerFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&f.allowCommands, "allow-commands", false, "run the commands of schedules, whoever has added them")
	flags.IntVarP(&f.concurrency, "concurrency", "j", 0, "the largest number of runs at a time (default: processors)")
	flags.DurationVar(&f.grace, "grace", 25*time.Second, "how long runs may go on after a stop")
	withoutEnvironment(flags, "allow-commands")
}

// scheduler opens the database for running what is due; close it in the end.
func (a *app) scheduler(ctx context.Context, f schedulerFlags) (s *schedule.Scheduler, closeAll func(), err error) {
	if !f.allowCommands {
		return nil, nil, usagef("whoever may insert a schedule would have commands run as you, here, with your environment: if that is what you want, add --allow-commands")
	}
	if f.concurrency < 0 || f.grace < 0 {
		return nil, nil, usagef("--concurrency and --grace can't be negative")
	}
	if f.grace == 0 {
		f.grace = -1
	}
	variables, err := a.databaseVariables()
	if err != nil {
		return nil, nil, err
	}
	store, err := a.openSchedules(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	unlock, err := lockFile(a.address(), (*flock.Flock).TryRLock)
	if err != nil {
		store.Close()
		return nil, nil, err
	}
	s, err = schedule.New(store, schedule.Options{
		AllowCommands: true, Env: variables, Concurrency: f.concurrency, Grace: f.grace, Logger: a.log,
	})
	closeAll = func() {
		unlock()
		store.Close()
	}
	if err != nil {
		closeAll()
	}
	return s, closeAll, err
}

func (a *app) scheduleTickCommand() *cobra.Command {
	var f schedulerFlags
	var exitCode bool
	cmd := &cobra.Command{
		Use:   "tick --allow-commands",
		Short: "Start what is due now, in the foreground, and end",
		Long: `Start what is due now, wait for it to end, and end. If nothing is due, or its lock
is held, it ends quickly. Have cron call it every minute, on as many machines as
you like; others may go on meanwhile.

Exit codes: 0 all well, also when there was nothing to do; 3 a run did not end
well; with --exit-code, if nothing was started: 4 nothing was due, 5 a lock is
held.`,
		Example: `  * * * * *  cd /srv/app && windrow schedule tick --allow-commands -q     # a line of a crontab
  windrow schedule tick --allow-commands --exit-code`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, closeAll, err := a.scheduler(cmd.Context(), f)
			if err != nil {
				return err
			}
			defer closeAll()
			ticked, err := s.Tick(cmd.Context())
			if err != nil {
				return err
			}
			return a.afterTick(ticked, exitCode)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&exitCode, "exit-code", false, "exit with 4 if nothing was due, and with 5 if a lock is held")
	return cmd
}

// afterTick turns what a tick did into the exit code.
func (a *app) afterTick(ticked schedule.Ticked, exitCode bool) error {
	if ticked.NotAllowed > 0 {
		a.say("%s %s due that only a program which embeds windrow can run", plural(ticked.NotAllowed, "run"), are(ticked.NotAllowed))
	}
	switch {
	case ticked.Failed > 0:
		return &exitError{code: exitRows, err: errors.New(plural(int64(ticked.Failed), "run") + " did not end well; look at: " + a.again("schedule list"))}
	case ticked.Started+ticked.Skipped > 0:
		return nil
	case ticked.Blocked > 0:
		a.say("%s for a lock that is held", plural(ticked.Blocked, "run")+" "+waits(ticked.Blocked))
		if exitCode {
			return &exitError{code: exitLocked}
		}
	case exitCode:
		return &exitError{code: exitNothingDue}
	}
	return nil
}

// waits is the verb that goes with so many things.
func waits(n int64) string {
	if n == 1 {
		return "waits"
	}
	return "wait"
}
