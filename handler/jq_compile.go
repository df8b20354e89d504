package handler

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/itchyny/gojq"
)

// errEnvironment: a program that reads a machine's environment would give other
// results elsewhere, and silent nulls if it were given an empty one.
var errEnvironment = errors.New("env and $ENV hold nothing here: hand the program what it needs as a named argument")

// compile compiles the program for the variables of the given names.
func compile(program string, names []string) (*gojq.Code, error) {
	query, err := gojq.Parse(program)
	if err != nil {
		return nil, syntaxError(program, err)
	}
	environment := false
	code, err := gojq.Compile(query,
		gojq.WithVariables(names),
		gojq.WithEnvironLoader(func() []string { environment = true; return nil }),
	)
	switch {
	case err != nil && strings.Contains(err.Error(), "input(s)/0"):
		return nil, fmt.Errorf("jq program: %w: a program sees one row at a time, as its input (.)", err)
	case err != nil:
		return nil, fmt.Errorf("jq program: %w", err)
	case environment:
		return nil, fmt.Errorf("jq program: %w", errEnvironment)
	}
	return code, nil
}

// syntaxError says where in the program the parser stopped, and shows that line.
func syntaxError(program string, err error) error {
	var parse *gojq.ParseError
	if !errors.As(err, &parse) {
		return fmt.Errorf("jq program: %w", err)
	}
	at := max(0, min(parse.Offset, len(program))-len(parse.Token))
	start := strings.LastIndexByte(program[:at], '\n') + 1
	line := 1 + strings.Count(program[:at], "\n")
	column := 1 + utf8.RuneCountInString(program[start:at])
	return fmt.Errorf("jq program, line %d, column %d: %w%s", line, column, err, excerpt(program, start, at))
}

// excerpt shows the line that begins at start, with a caret under the byte at.
// A line too long for a terminal is not shown.
func excerpt(program string, start, at int) string {
	line, _, _ := strings.Cut(program[start:], "\n")
	if len(line) > 160 {
		return ""
	}
	indent := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, program[start:at])
	return "\n    " + strings.TrimRight(line, "\r") + "\n    " + indent + "^"
}
