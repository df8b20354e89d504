package handler

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/windrow-go/windrow/model"
)

// environment is what every child of a command gets: the variables that windrow
// itself has, but none that leads to its database, and those of the row.
type environment []string

// newEnvironment leaves windrow's own variables (WINDROW_*) and those of
// PostgreSQL's client library (PG*) out of inherited, and adds extra.
func newEnvironment(inherited, extra []string) (environment, error) {
	var e environment
	for _, variable := range inherited {
		if !strings.HasPrefix(variable, "WINDROW_") && !strings.HasPrefix(variable, "PG") {
			e = append(e, variable)
		}
	}
	for _, variable := range extra {
		name, _, ok := strings.Cut(variable, "=")
		if !ok || name == "" || strings.ContainsRune(variable, 0) {
			return nil, fmt.Errorf("environment variable %q: it must be NAME=VALUE, without NUL", name)
		}
		e = append(e, variable)
	}
	return e[:len(e):len(e)], nil
}

// with returns the environment for one row. A row without a key has an empty
// WINDROW_ROW_KEY; a NUL in a key, which no variable can hold, is U+FFFD there.
func (e environment) with(row model.Dataset) []string {
	key := ""
	if row.Key != nil {
		key = strings.ReplaceAll(*row.Key, "\x00", "\uFFFD")
	}
	return append(e,
		"WINDROW_ROW_ID="+strconv.FormatInt(row.ID, 10),
		"WINDROW_ROW_KEY="+key,
		"WINDROW_ROW_ATTEMPT="+strconv.Itoa(int(row.Attempts)),
		"WINDROW_ROW_IDEMPOTENCY_KEY="+row.IdempotencyKey(),
	)
}
