package doctor

import (
	"context"
	"slices"
)

// Slot lets the tests judge replication slots that are hard to make.
type Slot = slot

// Finding is what is said of it.
func (s slot) Finding() Finding { return s.finding() }

// Only is [Postgres] with just these checks, and those that they need.
func Only(ctx context.Context, address string, opts Options, names ...string) []Finding {
	names = append(names, "connection", "schema")
	return look(ctx, address, opts, slices.DeleteFunc(slices.Clone(postgresChecks), func(c check[*patient]) bool {
		return !slices.Contains(names, c.name)
	}))
}

// LongLog are options by which a log of that many bytes is long.
func LongLog(bytes int64) Options { return Options{longLog: bytes} }
