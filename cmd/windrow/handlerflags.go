package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/windrow-go/windrow/handler"
	"github.com/windrow-go/windrow/processor"
)

// handlerFlags say what works a row.
type handlerFlags struct {
	jq        string
	jqFile    string
	args      []string
	jsonArgs  []string
	exec      string
	execJSON  bool
	outputDir string
	stream    streamFlags
	http      httpFlags
	timeout   time.Duration
}

func (h *handlerFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&h.jq, "jq", "", "work each row with this jq `program`; its one output is the result")
	flags.StringVar(&h.jqFile, "jq-file", "", "the jq program is in this `file`")
	flags.StringArrayVar(&h.args, "arg", nil, "give the jq program a string as $name: `name=value`")
	flags.StringArrayVar(&h.jsonArgs, "argjson", nil, "give the jq program a JSON value as $name: `name=json`")
	flags.StringVar(&h.exec, "exec", "", "work each row with this `command` line (sh -c): data on stdin, result on stdout")
	flags.BoolVar(&h.execJSON, "exec-json", false, "the command's output must be JSON")
	flags.StringVar(&h.outputDir, "output-dir", "", "a `directory` for a file of each row, which the command writes to $WINDROW_ROW_OUTPUT")
	h.stream.add(flags)
	h.http.add(flags)
	flags.DurationVar(&h.timeout, "timeout", 0, "how long one row may take, e.g. 30s (default: no limit; with --http 1m)")
}

// kinds are the handlers with the flags that belong to each: the first name a
// handler, or are the command behind --.
var kinds = []struct {
	names, others []string
	command       bool
}{
	{names: []string{"jq", "jq-file"}, others: []string{"arg", "argjson"}},
	{names: []string{"exec"}, others: []string{"exec-json", "output-dir"}, command: true},
	{names: []string{"stream"}, others: []string{"stream-shared"}},
	{names: []string{"http"}, others: []string{"http-batch", "batch-wait", "header", "header-file", "http-ca"}},
}

// displacedHandlers are the flags that the environment may not set, since a handler
// was typed.
func displacedHandlers(flags *pflag.FlagSet) []string {
	behindDash := flags.ArgsLenAtDash()
	command := behindDash >= 0 && behindDash < flags.NArg()
	typed := func(name string) bool {
		f := flags.Lookup(name)
		return f != nil && f.Changed
	}
	given := command
	var displaced []string
	for _, kind := range kinds {
		chosen := slices.ContainsFunc(kind.names, typed) || kind.command && command
		given = given || chosen
		displaced = append(displaced, kind.names...)
		if !chosen {
			displaced = append(displaced, kind.others...)
		}
	}
	if !given {
		return nil
	}
	return displaced
}

const handlerHelp = `
Handlers, exactly one of:
  --jq PROGRAM          a jq program; errors fail the row for good
  --exec 'COMMAND'      a command line for sh -c, one process a row
  -- CMD ARG...         a program without a shell, one process a row; {field} in
                        an argument is replaced by that field of the row
  --stream 'COMMAND'    children that live for many rows and speak JSON Lines
  --http URL            a service: one POST a row, or one for many (--http-batch)
A process gets the row's data as JSON on stdin; its stdout is the result. Exit
status 0 is success, 65 fails the row for good, any other is tried again. It sees
WINDROW_ROW_ID, WINDROW_ROW_KEY, WINDROW_ROW_ATTEMPT and
WINDROW_ROW_IDEMPOTENCY_KEY, and no other WINDROW_* or PG* variable.
While a handler can't serve (a refused connection, status 429 or 503, a command
that can't be started, 20 rows in a row that failed) rows go back as they were,
and the worker slows down until it serves again. More: docs/handlers.md`

// madeHandler is a handler that knows its version, and what belongs to it.
type madeHandler struct {
	fingerprinted
	timeout   time.Duration // of a row, for the worker
	batchRows int
	batchWait time.Duration
}

type fingerprinted interface {
	processor.Handler
	Fingerprint() string
}

// Close ends what the handler keeps: children, connections.
func (m *madeHandler) Close() {
	if closer, ok := m.fingerprinted.(io.Closer); ok {
		_ = closer.Close() // nothing that matters is left to be said
	}
}

// handler is what the processor gets.
func (m *madeHandler) handler() processor.Handler { return m.fingerprinted }

// given tells whether a handler is named.
func (h *handlerFlags) given(command []string) bool {
	return h.jq != "" || h.jqFile != "" || h.exec != "" || h.stream.command != "" || h.http.url != "" || len(command) > 0
}

// build makes the handler for a worker with so many slots; command is what stands
// behind --.
func (h *handlerFlags) build(a *app, slots int, command []string) (*madeHandler, error) {
	given := map[string]bool{
		"--jq": h.jq != "", "--jq-file": h.jqFile != "", "--exec": h.exec != "", "--stream": h.stream.command != "",
		"--http": h.http.url != "", "-- CMD": len(command) > 0,
	}
	maps.DeleteFunc(given, func(_ string, is bool) bool { return !is })
	if len(given) != 1 {
		return nil, usagef("say what works a row: exactly one of --jq, --jq-file, --exec, --stream, --http, or -- CMD ARG...")
	}
	if err := h.checkStray(given); err != nil {
		return nil, err
	}
	switch {
	case given["--stream"]:
		return h.stream.build(a, h.timeout)
	case given["--http"]:
		return h.http.build(slots, h.timeout)
	case given["--jq"] || given["--jq-file"]:
		made, err := h.buildJQ()
		if err != nil {
			return nil, err
		}
		return &madeHandler{fingerprinted: made, timeout: h.timeout}, nil
	}
	options := handler.CommandOptions{Args: command, Shell: h.exec, JSON: h.execJSON, OutputDir: h.outputDir}
	made, err := handler.NewCommand(options)
	if err != nil {
		return nil, usagef("%w", err)
	}
	return &madeHandler{fingerprinted: made, timeout: h.timeout}, nil
}

// checkStray refuses flags of another handler than the one that is given.
func (h *handlerFlags) checkStray(given map[string]bool) error {
	strays := []struct {
		set         bool
		flag, whose string
		fits        bool
	}{
		{len(h.args) > 0 || len(h.jsonArgs) > 0, "--arg and --argjson are", "--jq", given["--jq"] || given["--jq-file"]},
		{h.execJSON, "--exec-json is", "commands", given["--exec"] || given["-- CMD"]},
		{h.outputDir != "", "--output-dir is", "commands", given["--exec"] || given["-- CMD"]},
		{h.stream.shared, "--stream-shared is", "--stream", given["--stream"]},
		{h.http.isSet(), "--http-batch, --batch-wait, --header, --header-file and --http-ca are", "--http", given["--http"]},
	}
	for _, s := range strays {
		if s.set && !s.fits {
			return usagef("%s for %s", s.flag, s.whose)
		}
	}
	return nil
}

func (h *handlerFlags) buildJQ() (fingerprinted, error) {
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
	version     string
	retryDelay  string
	rate        string
	grace       time.Duration
	maxBatch    int
	maxFailures string
	maxCost     float64
}

func (w *workerFlags) add(flags *pflag.FlagSet, maxFailures string) {
	flags.IntVarP(&w.concurrency, "concurrency", "j", 0, "rows worked at once (default: the number of processors)")
	flags.DurationVar(&w.lease, "lease", time.Minute, "how long rows stay with a worker that shows no life; renewed meanwhile")
	flags.IntVar(&w.maxAttempts, "max-attempts", 5, "tries before a row fails")
	flags.StringVar(&w.version, "handler-version", "", "the `version` of the handler, stored with each result (default: made of the handler's flags and files)")
	flags.StringVar(&w.retryDelay, "retry-delay", "1s..1h", "the wait before another try: random, below a ceiling that doubles from the `least..most`")
	flags.StringVar(&w.rate, "rate", "", "start at most so many rows, e.g. `60/m`, 10/s; of this process alone")
	flags.DurationVar(&w.grace, "grace", 25*time.Second, "how long rows being worked may go on after a stop")
	flags.IntVar(&w.maxBatch, "max-batch", 500, "most rows of one check-out; the size follows the time a row takes")
	flags.Float64Var(&w.maxCost, "max-cost", 0, "stop when the handler's calls, of the whole fleet, have cost this much by their answers (default: never)")
	flags.StringVar(&w.maxFailures, "max-failures", maxFailures, "stop when more than this fails: `N` calls, or P% of the last 100; none: never")
}

// slots is how many rows may be worked at once.
func (w *workerFlags) slots() int {
	if w.concurrency > 0 {
		return w.concurrency
	}
	return runtime.GOMAXPROCS(0)
}

// options turns the flags into the processor's.
func (w *workerFlags) options(a *app, made *madeHandler) (processor.Options, error) {
	budget, err := parseBudget(w.maxFailures)
	if err != nil {
		return processor.Options{}, err
	}
	least, most, err := parseRetryDelay(w.retryDelay)
	if err != nil {
		return processor.Options{}, err
	}
	rate, err := parseRate(w.rate)
	if err != nil {
		return processor.Options{}, err
	}
	timeout := made.timeout
	if w.concurrency < 0 || w.maxAttempts < 1 || w.maxBatch < 1 || w.lease < time.Second || timeout < 0 || !(w.maxCost >= 0) {
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
		MaxCost:     w.maxCost,
		RetryMin:    least,
		RetryMax:    most,
		Rate:        rate,
		BatchRows:   made.batchRows,
		BatchWait:   made.batchWait,
		Version:     cmp.Or(w.version, made.Fingerprint()),
		Program:     buildVersion(),
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
	case !(w.maxCost >= 0):
		return fmt.Errorf("--max-cost %v: must not be negative", w.maxCost)
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

// parseRetryDelay reads 1s..1h, or one delay for both.
func parseRetryDelay(text string) (least, most time.Duration, err error) {
	from, to, isRange := strings.Cut(text, "..")
	if !isRange {
		to = from
	}
	least, err1 := time.ParseDuration(from)
	most, err2 := time.ParseDuration(to)
	switch {
	case err1 != nil || err2 != nil || least <= 0:
		return 0, 0, usagef("--retry-delay %s: use two durations such as 1s..1h", text)
	case most < least:
		return 0, 0, usagef("--retry-delay %s: the longest delay is below the shortest", text)
	}
	return least, most, nil
}

// parseRate reads 60/m as rows a second.
func parseRate(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	count, unit, _ := strings.Cut(text, "/")
	n, err := strconv.ParseFloat(count, 64)
	per := map[string]float64{"": 1, "s": 1, "m": 60, "h": 3600}[unit]
	if err != nil || per == 0 || !(n > 0) || n > 1e9 {
		return 0, usagef("--rate %s: use a number of rows per s, m or h, such as 60/m", text)
	}
	return n / per, nil
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
