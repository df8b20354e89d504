package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/windrow-go/windrow/handler"
	"github.com/windrow-go/windrow/processor"
)

// handlerFlags say what works a row.
type handlerFlags struct {
	jq       string
	jqFile   string
	args     []string
	jsonArgs []string
	exec     string
	execJSON bool
	timeout  time.Duration
}

func (h *handlerFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&h.jq, "jq", "", "work each row with this jq `program`; its one output is the result")
	flags.StringVar(&h.jqFile, "jq-file", "", "the jq program is in this `file`")
	flags.StringArrayVar(&h.args, "arg", nil, "give the jq program a string as $name: `name=value`")
	flags.StringArrayVar(&h.jsonArgs, "argjson", nil, "give the jq program a JSON value as $name: `name=json`")
	flags.StringVar(&h.exec, "exec", "", "work each row with this `command` line (sh -c): data on stdin, result on stdout")
	flags.BoolVar(&h.execJSON, "exec-json", false, "the command's output must be JSON")
	flags.DurationVar(&h.timeout, "timeout", 0, "how long one row may take, e.g. 30s (default: no limit)")
}

// displacedHandlers are the flags that the environment may not set, since a handler
// was typed.
func displacedHandlers(flags *pflag.FlagSet) []string {
	typed := func(name string) bool {
		f := flags.Lookup(name)
		return f != nil && f.Changed
	}
	behindDash := flags.ArgsLenAtDash()
	command := typed("exec") || behindDash >= 0 && behindDash < flags.NArg()
	switch {
	case typed("jq") || typed("jq-file"):
		return []string{"jq", "jq-file", "exec", "exec-json"}
	case command:
		return []string{"jq", "jq-file", "exec", "arg", "argjson"}
	}
	return nil
}

const handlerHelp = `
Handlers, exactly one of:
  --jq PROGRAM          a jq program; errors fail the row for good
  --exec 'COMMAND'      a command line for sh -c, one process a row
  -- CMD ARG...         a program without a shell, one process a row; {field} in
                        an argument is replaced by that field of the row
A process gets the row's data as JSON on stdin; its stdout is the result. Exit
status 0 is success, 65 fails the row for good, any other is tried again. It sees
WINDROW_ROW_ID, WINDROW_ROW_KEY, WINDROW_ROW_ATTEMPT and
WINDROW_ROW_IDEMPOTENCY_KEY, and no other WINDROW_* or PG* variable.`

// fingerprinted is a handler that knows its version.
type fingerprinted interface {
	processor.Handler
	Fingerprint() string
}

// build makes the handler; command is what stands behind --.
func (h *handlerFlags) build(command []string) (fingerprinted, error) {
	given := 0
	for _, set := range []bool{h.jq != "", h.jqFile != "", h.exec != "", len(command) > 0} {
		if set {
			given++
		}
	}
	if given != 1 {
		return nil, usagef("say what works a row: exactly one of --jq, --jq-file, --exec, or -- CMD ARG...")
	}
	if h.jq != "" || h.jqFile != "" {
		return h.buildJQ()
	}
	if len(h.args) > 0 || len(h.jsonArgs) > 0 {
		return nil, usagef("--arg and --argjson are for --jq")
	}
	options := handler.CommandOptions{Args: command, Shell: h.exec, JSON: h.execJSON}
	made, err := handler.NewCommand(options)
	if err != nil {
		return nil, usagef("%w", err)
	}
	return made, nil
}

func (h *handlerFlags) buildJQ() (fingerprinted, error) {
	if h.execJSON {
		return nil, usagef("--exec-json is for commands")
	}
	program, flag := h.jq, "--jq"
	if h.jqFile != "" {
		text, err := os.ReadFile(h.jqFile)
		if err != nil {
			return nil, usagef("--jq-file: %w", err)
		}
		program, flag = string(text), "--jq-file "+h.jqFile
	}
	args, err := pairs("--arg", h.args)
	if err != nil {
		return nil, err
	}
	values, err := pairs("--argjson", h.jsonArgs)
	if err != nil {
		return nil, err
	}
	options := handler.JQOptions{Program: program, Args: args, JSONArgs: map[string]json.RawMessage{}}
	for name, text := range values {
		if !json.Valid([]byte(text)) {
			return nil, usagef("--argjson %s: the value is not JSON", name)
		}
		options.JSONArgs[name] = json.RawMessage(text)
	}
	made, err := handler.NewJQ(options)
	if err != nil {
		return nil, usagef("%s: %w", flag, err)
	}
	return made, nil
}

// workerFlags say how rows are worked.
type workerFlags struct {
	concurrency int
	lease       time.Duration
	maxAttempts int
	grace       time.Duration
	maxBatch    int
	maxFailures string
}

func (w *workerFlags) add(flags *pflag.FlagSet, maxFailures string) {
	flags.IntVarP(&w.concurrency, "concurrency", "j", 0, "rows worked at once (default: the number of processors)")
	flags.DurationVar(&w.lease, "lease", time.Minute, "how long rows stay with a worker that shows no life; renewed meanwhile")
	flags.IntVar(&w.maxAttempts, "max-attempts", 5, "tries before a row fails")
	flags.DurationVar(&w.grace, "grace", 25*time.Second, "how long rows being worked may go on after a stop")
	flags.IntVar(&w.maxBatch, "max-batch", 500, "most rows of one check-out; the size follows the time a row takes")
	flags.StringVar(&w.maxFailures, "max-failures", maxFailures, "stop when more than this fails: `N` calls, or P% of the last 100; none: never")
}

// options turns the flags into the processor's.
func (w *workerFlags) options(a *app, version string, timeout time.Duration) (processor.Options, error) {
	budget, err := parseBudget(w.maxFailures)
	if err != nil {
		return processor.Options{}, err
	}
	if w.concurrency < 0 || w.maxAttempts < 1 || w.maxBatch < 1 || w.lease < time.Second || timeout < 0 {
		return processor.Options{}, usagef("%w", w.fault(timeout))
	}
	grace := w.grace
	if grace == 0 {
		grace = -1 // the processor's zero is its default
	}
	return processor.Options{
		Concurrency: w.concurrency,
		Lease:       w.lease,
		Timeout:     timeout,
		MaxAttempts: w.maxAttempts,
		Grace:       grace,
		MaxBatch:    w.maxBatch,
		MaxFailures: budget,
		Version:     version,
		Logger:      a.log,
	}, nil
}

func (w *workerFlags) fault(timeout time.Duration) error {
	switch {
	case w.concurrency < 0:
		return fmt.Errorf("--concurrency %d: must not be negative", w.concurrency)
	case w.maxAttempts < 1:
		return fmt.Errorf("--max-attempts %d: must be at least 1", w.maxAttempts)
	case w.maxBatch < 1:
		return fmt.Errorf("--max-batch %d: must be at least 1", w.maxBatch)
	case w.lease < time.Second:
		return fmt.Errorf("--lease %v: must be at least 1s", w.lease)
	default:
		return fmt.Errorf("--timeout %v: must not be negative", timeout)
	}
}

// parseBudget reads 50%, 100 or none.
func parseBudget(text string) (processor.Budget, error) {
	if text == "none" || text == "" {
		return processor.Budget{}, nil
	}
	if share, isShare := strings.CutSuffix(text, "%"); isShare {
		percent, err := strconv.ParseFloat(share, 64)
		if err == nil && percent > 0 && percent <= 100 {
			return processor.Budget{Share: percent / 100}, nil
		}
	} else if count, err := strconv.ParseInt(text, 10, 64); err == nil && count > 0 {
		return processor.Budget{Count: count}, nil
	}
	return processor.Budget{}, usagef("--max-failures %s: use a number such as 100, a share such as 50%%, or none", text)
}

// pairs reads name=value words; their flag is named in the error.
func pairs(flag string, words []string) (map[string]string, error) {
	out := make(map[string]string, len(words))
	for _, word := range words {
		name, value, found := strings.Cut(word, "=")
		if !found || name == "" {
			return nil, usagef("%s %s: use name=value", flag, word)
		}
		out[name] = value
	}
	return out, nil
}
