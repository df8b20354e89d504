package main

import (
	"github.com/spf13/cobra"
)

func (a *app) pauseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "pause",
		Short: "Make all workers stop checking rows out, until resume",
		Long: `Make all workers of the job stop checking rows out, without ending them. They
notice within a second or so, finish the rows that they hold, and wait until
windrow resume. Workers started meanwhile wait as well, and so does run.`,
		Example: `  windrow pause
  windrow status
  windrow resume`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.open(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer s.Close()
			if err := s.Pause(cmd.Context(), whoAmI()); err != nil {
				return err
			}
			a.say("paused; go on with: %s", a.again("resume"))
			return nil
		},
	}
}

func (a *app) resumeCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "resume",
		Short:   "End a pause",
		Long:    "End a pause: workers check rows out again within a second or so.",
		Example: `  windrow resume`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.open(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer s.Close()
			paused, err := s.Paused(cmd.Context())
			if err != nil {
				return err
			}
			if !paused {
				a.say("the job is not paused")
				return nil
			}
			if err := s.Resume(cmd.Context()); err != nil {
				return err
			}
			a.say("resumed")
			return nil
		},
	}
}
