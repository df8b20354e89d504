package handler

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// DefaultMaxOutput is how much output of a command is taken unless
// [CommandOptions] say otherwise: 64 MiB.
const DefaultMaxOutput = 64 << 20

// CommandOptions says what a [Command] runs. Exactly one of Args and Shell is
// given.
type CommandOptions struct {
	// Args are the program and its arguments, run without a shell. In an
	// argument, {name} is replaced by the top-level field of that name: a string
	// without quotes, any other value as JSON text, always within that one
	// argument. A row without the field fails for good. {{name}} is the text
	// {name}. A name begins with a letter or _ and has letters, digits, _, and,
	// inside, also spaces, dots and hyphens; other braces, and ${name}, are left
	// alone. The program's own name, and code for a shell (sh -c CODE), can't
	// hold fields. Mind values that begin with a hyphen: most programs take --
	// as the end of their options.
	Args []string
	// Shell is a line for sh -c. No field is put into it; it has standard input
	// and the WINDROW_ROW_ variables.
	Shell string
	// JSON demands that the output is one JSON value; anything else, also no
	// output, is an error, and the row is tried again.
	JSON bool
	// Timeout is the most time that one row may take; zero means no limit. It
	// is an ordinary error, so the row is tried again.
	Timeout time.Duration
	// MaxOutput is how many bytes of output are taken; more fails the row for
	// good. Zero means [DefaultMaxOutput].
	MaxOutput int64
	// OutputDir is a directory, which must be there, for a file of each row;
	// see [OutputFile]. Empty: no files.
	OutputDir string
	// Env are variables, as NAME=VALUE, that the command gets besides those
	// that it inherits. This is the way to hand it a PG or WINDROW_ variable.
	Env []string
}

func (o CommandOptions) withDefaults() CommandOptions {
	if o.MaxOutput == 0 {
		o.MaxOutput = DefaultMaxOutput
	}
	return o
}

func (o CommandOptions) validate() error {
	switch {
	case o.Timeout < 0:
		return fmt.Errorf("command timeout: %s is negative", o.Timeout)
	case o.MaxOutput < 0:
		return fmt.Errorf("command output limit: %d is negative", o.MaxOutput)
	}
	if err := checkOutputDir(o.OutputDir); err != nil {
		return err
	}
	return o.commandLine().validate()
}

func (o CommandOptions) commandLine() commandLine {
	return commandLine{kind: "command", args: o.Args, shell: o.Shell}
}

// templates returns the arguments, cut at their placeholders.
func (o CommandOptions) templates() ([]template, error) {
	if o.Shell != "" {
		return []template{{{literal: "sh"}}, {{literal: "-c"}}, {{literal: o.Shell}}}, nil
	}
	templates := make([]template, len(o.Args))
	for i, argument := range o.Args {
		templates[i] = parseTemplate(argument)
	}
	if templates[0].hasFields() {
		return nil, fmt.Errorf("command: the program's name %q can't depend on the row", o.Args[0])
	}
	if i := shellCode(o.Args); i > 0 && templates[i].hasFields() {
		return nil, fmt.Errorf("command: argument %d is code for %s, and a field put into it would be run as code: "+
			`write "$1" there and the field behind it: %[2]s -c '… "$1" …' %[2]s {field}`, i, filepath.Base(o.Args[0]))
	}
	return templates, nil
}

// shellCode returns which argument a shell would run as code (sh -c CODE), or 0.
func shellCode(args []string) int {
	if !slices.Contains([]string{"sh", "bash", "dash", "ksh", "zsh"}, filepath.Base(args[0])) {
		return 0
	}
	for i := 1; i < len(args)-1 && strings.HasPrefix(args[i], "-"); i++ {
		switch option := args[i]; {
		case strings.HasPrefix(option, "--"):
		case strings.Contains(option, "c"):
			return i + 1
		case strings.HasSuffix(option, "o"): // -o pipefail
			i++
		}
	}
	return 0
}

// fingerprint is over whether JSON is demanded, and what is run.
func (o CommandOptions) fingerprint(program string) string {
	f := newFingerprint("command")
	f.add(fmt.Sprint(o.JSON))
	o.commandLine().addTo(f, program)
	return f.String()
}
