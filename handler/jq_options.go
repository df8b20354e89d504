package handler

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// JQOptions says what a [JQ] runs.
type JQOptions struct {
	// Program is the jq program. It must not be blank; . gives the data back.
	Program string
	// Args are strings that the program knows by name: Args["unit"] is $unit,
	// and $ARGS.named.unit.
	Args map[string]string
	// JSONArgs are the same for any JSON value. A name must not be in both.
	JSONArgs map[string]json.RawMessage
	// Timeout is the most time that one row may take; zero means no limit. It
	// is an ordinary error, so the row is tried again.
	Timeout time.Duration
}

func (o JQOptions) validate() error {
	if strings.TrimSpace(o.Program) == "" {
		return errors.New("jq program: it is empty; write . for one that gives the data back")
	}
	if o.Timeout < 0 {
		return fmt.Errorf("jq timeout: %s is negative", o.Timeout)
	}
	return nil
}

// variables returns the names of the arguments, sorted, with their $, and their
// values, both with $ARGS at the end.
func (o JQOptions) variables() ([]string, []any, error) {
	named, err := o.named()
	if err != nil {
		return nil, nil, err
	}
	var names []string
	var values []any
	for _, name := range slices.Sorted(maps.Keys(named)) {
		names = append(names, "$"+name)
		values = append(values, named[name])
	}
	all := map[string]any{"named": named, "positional": []any{}}
	return append(names, "$ARGS"), append(values, all), nil
}

func (o JQOptions) named() (map[string]any, error) {
	named := make(map[string]any, len(o.Args)+len(o.JSONArgs))
	for name, value := range o.Args {
		named[name] = value
	}
	for name, text := range o.JSONArgs {
		if _, ok := named[name]; ok {
			return nil, fmt.Errorf("jq argument %q is given both as a string and as JSON", name)
		}
		if len(text) == 0 {
			return nil, fmt.Errorf("jq argument %q is empty, not JSON", name)
		}
		value, err := decodeJSON(text)
		if err != nil {
			return nil, fmt.Errorf("jq argument %q is not JSON: %w", name, err)
		}
		named[name] = value
	}
	for name := range named {
		if !isJQName(name) {
			return nil, fmt.Errorf("jq argument %q: a name has letters, digits and _, begins with no digit, and is none of ARGS, ENV and __loc__", name)
		}
	}
	return named, nil
}

// isJQName tells whether $name can be a variable of the caller's.
func isJQName(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != "" && name != "ARGS" && name != "ENV" && name != "__loc__"
}

// fingerprint is over the program's text and the arguments; a time limit makes
// no other result.
func (o JQOptions) fingerprint() string {
	f := newFingerprint("jq")
	f.add(o.Program)
	for _, name := range slices.Sorted(maps.Keys(o.Args)) {
		f.add("string", name, o.Args[name])
	}
	for _, name := range slices.Sorted(maps.Keys(o.JSONArgs)) {
		f.add("json", name, string(o.JSONArgs[name]))
	}
	return f.String()
}
