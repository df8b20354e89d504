package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/windrow-go/windrow/schedule"
)

func (a *app) schedulePauseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "pause NAME",
		Short: "Keep further runs of a schedule from starting",
		Long: `Keep further runs of a schedule, also those on demand, from starting until
'schedule resume'. A run that goes on is left alone: 'schedule cancel' ends it.`,
		Example: `  windrow schedule pause nightly`,
		RunE: a.withSchedule(func(ctx context.Context, s schedule.Store, name string) error {
			if err := s.Pause(ctx, name, whoAmI()); err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "%s is paused\n", name)
			return nil
		}),
	}
}

func (a *app) scheduleResumeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "resume NAME",
		Short: "Let runs of a paused schedule start again",
		Long: `Let runs of a paused schedule start again. A time that passed meanwhile counts as
missed: there is one run for all of them, or none if the schedule skips them.`,
		Example: `  windrow schedule resume nightly`,
		RunE: a.withSchedule(func(ctx context.Context, s schedule.Store, name string) error {
			if err := s.Resume(ctx, name); err != nil {
				return err
			}
			o, err := s.Get(ctx, name)
			if err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "%s is resumed, next at %s\n", name, nextText(o))
			return nil
		}),
	}
}

func (a *app) scheduleRemoveCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "End a schedule; its history stays",
		Long: `End a schedule: its waiting runs are forgotten, a run that goes on is left alone,
and its history stays.`,
		Example: `  windrow schedule remove nightly`,
		RunE: a.withSchedule(func(ctx context.Context, s schedule.Store, name string) error {
			o, err := s.Get(ctx, name)
			if err != nil {
				return err
			}
			what := commandLine(o.Command)
			if o.Function != "" {
				what = "function " + o.Function
			}
			if err := a.confirm(fmt.Sprintf("Schedule %s (%s: %s) is removed.", name, o.Rule, what), yes); err != nil {
				return err
			}
			if err := s.Remove(ctx, name); err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "%s is removed\n", name)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "don't ask")
	withoutEnvironment(cmd.Flags(), "yes")
	return cmd
}
