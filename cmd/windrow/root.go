package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/term"

	"github.com/windrow-go/windrow/internal/metrics"
	"github.com/windrow-go/windrow/internal/progress"
	"github.com/windrow-go/windrow/migrations"
)

// app is what all commands share: the streams, and what the global flags say.
type app struct {
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer

	database  string
	schema    string
	logLevel  string
	logFormat string
	quiet     bool

	databaseTyped bool // --database stood on the command line
	display       *progress.Display
	log           *zap.Logger
	metrics       *metrics.Worker // nil: nothing is measured
	begun         bool            // the command line was understood: what goes wrong now is no error in it
}

// run is the program: it returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, log: zap.NewNop()}
	a.display = progress.NewDisplay(stderr, false)
	root := a.rootCommand()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := stoppedEarly(ctx, root.ExecuteContext(ctx))
	if err != nil && !a.begun {
		err = usagef("%w", err)
	}
	_ = a.log.Sync() // a terminal can't be synced, which is no error
	var exit *exitError
	if err != nil && !(errors.As(err, &exit) && exit.err == nil) {
		fmt.Fprintln(stderr, "windrow: "+plainText(err))
	}
	return codeOf(err)
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "windrow",
		Short: "Work through every row of a very large table with a fleet of workers",
		Long: `Windrow works through every row of a very large table with a fleet of workers,
the table itself being the queue: rows are checked out for a while, processed by
your program with no transaction open, and checked in with their results.

One machine, one command:   windrow run input.csv --jq '{id, n: (.a + .b)}'
A fleet on PostgreSQL:      windrow migrate up, load, work, status, export`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			a.databaseTyped = cmd.Flags().Changed("database")
			if err := flagsFromEnvironment(cmd.Flags()); err != nil {
				return err
			}
			if err := migrations.CheckSchemaName(a.schema); err != nil {
				return usagef("--schema: %w", err)
			}
			if err := a.openLog(); err != nil {
				return err
			}
			a.begun = true
			return nil
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w\nSee '%s --help'.", err, cmd.CommandPath())
	})
	flags := root.PersistentFlags()
	flags.StringVar(&a.database, "database", "", "a postgres:// address or an SQLite `file` (default windrow.db; for run, a file beside its input)")
	flags.StringVar(&a.schema, "schema", "windrow", "the PostgreSQL `schema` of the job")
	flags.StringVar(&a.logLevel, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&a.logFormat, "log-format", "", "console or json (default: console on a terminal)")
	flags.BoolVarP(&a.quiet, "quiet", "q", false, "no progress, and only warnings in the log")
	root.AddCommand(a.runCommand(), a.migrateCommand(), a.loadCommand(), a.workCommand(), a.statusCommand(), a.topCommand(), a.workersCommand(), a.pauseCommand(), a.resumeCommand(),
		a.showCommand(), a.errorsCommand(), a.exportCommand(), a.reprocessCommand(), a.runsCommand(), a.diffCommand(), a.benchCommand(), a.doctorCommand(), a.verifyCommand(), a.scheduleCommand(), a.versionCommand())
	root.AddCommand(a.addCommand(), a.cancelCommand())
	describeEnvironment(root)
	return root
}

// openLog sets up the log on stderr, above the progress bar if there is one.
func (a *app) openLog() error {
	level, err := zapcore.ParseLevel(a.logLevel)
	if err != nil {
		return usagef("--log-level %s: use debug, info, warn or error", a.logLevel)
	}
	terminal := isTerminal(a.stderr)
	if a.quiet {
		level = max(level, zapcore.WarnLevel)
	}
	format := a.logFormat
	if format == "" {
		format = map[bool]string{true: "console", false: "json"}[terminal]
	}
	var encoder zapcore.Encoder
	switch format {
	case "console":
		config := zap.NewDevelopmentEncoderConfig()
		config.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05")
		config.ConsoleSeparator = " "
		encoder = zapcore.NewConsoleEncoder(config)
	case "json":
		config := zap.NewProductionEncoderConfig()
		config.EncodeTime = zapcore.RFC3339NanoTimeEncoder
		config.EncodeDuration = zapcore.StringDurationEncoder
		encoder = zapcore.NewJSONEncoder(config)
	default:
		return usagef("--log-format %s: use console or json", format)
	}
	a.display = progress.NewDisplay(a.stderr, terminal && !a.quiet)
	a.log = zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(a.display)), level))
	a.display.SetLog(a.log)
	return nil
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// say tells the user something on stderr, above a progress bar.
func (a *app) say(format string, args ...any) {
	if !a.quiet {
		fmt.Fprintf(a.display, format+"\n", args...)
	}
}

const noEnvironment = "windrow_no_environment"

// withoutEnvironment marks flags that destroy or repeat something: they must be
// typed.
func withoutEnvironment(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		_ = flags.SetAnnotation(name, noEnvironment, []string{"true"}) // fails only for an unknown name
	}
}

// variableOf returns the environment variable of a flag, or "".
func variableOf(f *pflag.Flag) string {
	switch {
	case f.Name == "database":
		return "WINDROW_DATABASE_URL"
	case f.Name == "help", f.Name == "version", f.Annotations[noEnvironment] != nil:
		return ""
	default:
		return "WINDROW_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
	}
}

// flagsFromEnvironment sets the flags that were not typed. A handler that was typed
// takes the place of one that the environment names.
func flagsFromEnvironment(flags *pflag.FlagSet) error {
	var failed error
	displaced := displacedHandlers(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		name := variableOf(f)
		if name == "" || f.Changed || failed != nil || slices.Contains(displaced, f.Name) {
			return
		}
		if value, set := os.LookupEnv(name); set && value != "" {
			if err := flags.Set(f.Name, value); err != nil {
				failed = usagef("environment variable %s: %w", name, err)
			}
		}
	})
	return failed
}

// describeEnvironment names each flag's variable in the help.
func describeEnvironment(cmd *cobra.Command) {
	describe := func(f *pflag.Flag) {
		if name := variableOf(f); name != "" && !strings.Contains(f.Usage, "[$") {
			f.Usage += " [$" + name + "]"
		}
	}
	cmd.LocalFlags().VisitAll(describe)
	for _, child := range cmd.Commands() {
		describeEnvironment(child)
	}
}
