package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/windrow-go/windrow/schedule"
)

// scheduleFlags are those of schedule add.
type scheduleFlags struct {
	every, in      time.Duration
	cron, at, zone string
	lock, missed   string
	timeout        time.Duration
	asJSON         bool
}

func (a *app) scheduleAddCommand() *cobra.Command {
	var f scheduleFlags
	cmd := &cobra.Command{
		Use:   "add NAME (--every 15m | --cron '0 3 * * *' | --at TIME | --in 2h) [flags] -- COMMAND ARG...",
		Short: "Add a schedule and enter its first run",
		Long: `Add a schedule: a command, run without a shell, and when it runs. Its first run is
entered at once, and each further one when the one before starts, at the first time
after now: times that were missed become one run, or with --missed skip none.

  --every 15m            counted from due time to due time; the first in 15 minutes
  --cron '0 3 * * *'     minute, hour, day, month, weekday on the wall of --timezone
  --at '2026-12-24 18:00', --in 2h    once

One run at a time has a lock: that of its schedule, or one that schedules share
(--lock GROUP). The others wait. To change a schedule, remove it and add it anew:
its history stays.`,
		Example: `  windrow schedule add nightly --cron '0 3 * * *' --timezone Europe/Warsaw -- ./nightly.sh --full
  windrow schedule add retry --every 15m --lock loads --timeout 1h -- windrow reprocess --failed
  windrow schedule add once --in 90m -- sh -c 'cd /srv/app && ./migrate'`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			command, err := afterDash(cmd, args, 1)
			if err != nil {
				return err
			}
			if len(command) == len(args) {
				return usagef("add which schedule? Name it: windrow schedule add NAME --every 15m -- COMMAND")
			}
			made, err := f.schedule(args[0], command)
			if err != nil {
				return usagef("%w", err)
			}
			return a.addSchedule(cmd.Context(), made, f.asJSON)
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&f.every, "every", 0, "run at this `interval`, such as 15m or 24h")
	flags.StringVar(&f.cron, "cron", "", "run at the times of this cron `expression`, or @hourly, @daily, @weekly, @monthly, @yearly")
	flags.StringVar(&f.at, "at", "", "run once at this `time`: 2026-12-24T18:00:00Z, or '2026-12-24 18:00' in --timezone")
	flags.DurationVar(&f.in, "in", 0, "run once after this `time`")
	flags.StringVar(&f.zone, "timezone", "UTC", "the time `zone` of --cron and --at, such as Europe/Warsaw")
	flags.StringVar(&f.lock, "lock", "", "the `lock` that one run at a time has; none: runs may overlap (default: the schedule's own)")
	flags.DurationVar(&f.timeout, "timeout", 0, "end runs, with all their processes, that take longer (default: never)")
	flags.StringVar(&f.missed, "missed", string(schedule.RunOnce), "what becomes of times at which nobody could start the run: run-once or skip")
	flags.BoolVar(&f.asJSON, "json", false, "print the schedule as list --json does")
	withoutEnvironment(flags, "every", "cron", "at", "in", "lock", "timeout", "missed")
	return cmd
}

// schedule is what the flags say.
func (f scheduleFlags) schedule(name string, command []string) (schedule.Schedule, error) {
	s := schedule.Schedule{
		Name: name, Lock: f.lock, Timeout: f.timeout, Missed: schedule.Missed(f.missed),
		Command: command, CreatedBy: whoAmI(),
	}
	given := 0
	for _, set := range []bool{f.every != 0, f.cron != "", f.at != "", f.in != 0} {
		if set {
			given++
		}
	}
	if given != 1 {
		return s, fmt.Errorf("when is it to run? Give exactly one of --every, --cron, --at, --in")
	}
	if len(command) == 0 {
		return s, fmt.Errorf("what is it to run? A command stands behind --")
	}
	zone, err := schedule.LoadZone(f.zone)
	if err != nil {
		return s, fmt.Errorf("--timezone: %w", err)
	}
	switch {
	case f.every != 0:
		if s.Rule, err = schedule.Every(f.every); err != nil {
			err = fmt.Errorf("--every: %w", err)
		}
	case f.cron != "":
		if s.Rule, err = schedule.Cron(f.cron, zone); err != nil {
			err = fmt.Errorf("--cron: %w", err)
		}
	case f.at != "":
		s.Rule = schedule.Once()
		s.At, err = timeOf(f.at, zone)
	default:
		s.Rule, s.In = schedule.Once(), f.in
	}
	if err != nil {
		return s, err
	}
	return s, s.Validate()
}

// timeOf reads a time: with an offset, or on the wall of a zone.
func timeOf(text string, zone *time.Location) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	for _, layout := range []string{"2006-01-02 15:04", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02T15:04:05"} {
		at, err := time.ParseInLocation(layout, text, zone)
		if err != nil {
			continue
		}
		if at.Format(layout) != text {
			return time.Time{}, fmt.Errorf("--at %s: no clock in %s shows that time", text, zone)
		}
		return at, nil
	}
	return time.Time{}, fmt.Errorf("--at %s: use 2026-12-24T18:00:00Z, or '2026-12-24 18:00' in --timezone", text)
}

func (a *app) addSchedule(ctx context.Context, made schedule.Schedule, asJSON bool) error {
	s, err := a.openSchedules(ctx, true)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.Add(ctx, made); err != nil {
		return err
	}
	o, err := s.Get(ctx, made.Name)
	if err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(a.stdout).Encode(reportOf(o))
	}
	fmt.Fprintf(a.stdout, "%s: %s, next at %s\n", o.Name, o.Rule, timesText(o, coming))
	a.say("have it run by:  %s", a.again("schedule serve --allow-commands"))
	return nil
}
