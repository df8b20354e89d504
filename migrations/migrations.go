// Package migrations holds windrow's tables as numbered SQL, one folder for each
// engine with the same numbers, and applies them with goose. On PostgreSQL
// everything lives in a schema of windrow's own, its version table included; on
// SQLite a file is a job.
//
// Many processes may migrate at once: on PostgreSQL they take turns by a lock row
// in the schema, which holds behind a transaction-mode pooler too, where a
// session's advisory lock would not; on SQLite by a lock on a file beside the
// database, since goose reads the version before it takes SQLite's write lock.
package migrations

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"testing/fstest"

	"github.com/pressly/goose/v3"
	"gorm.io/gorm"

	"github.com/windrow-go/windrow/model"
)

//go:embed postgres/*.sql sqlite/*.sql
var files embed.FS

// Needed is the version of the schema that this program needs. A newer one that
// a newer program made is accepted: later migrations only add.
const Needed = 4

// DefaultSchema is the PostgreSQL schema of a job that names none.
const DefaultSchema = "windrow"

const (
	versionTable = "schema_version"
	lockTable    = "schema_lock"
)

var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// CheckSchemaName refuses names that would need quoting somewhere.
func CheckSchemaName(schema string) error {
	if plainName.MatchString(schema) && !strings.HasPrefix(schema, "pg_") {
		return nil
	}
	return fmt.Errorf("schema name %q: use lower-case letters, digits and _, not beginning with a digit or pg_", schema)
}

// Migrator brings one job's tables up to date.
type Migrator struct {
	db       *gorm.DB
	provider *goose.Provider
	schema   string // empty on SQLite
}

// Step is one migration and whether it has been applied.
type Step struct {
	Version int64  `json:"version"`
	Name    string `json:"name"`
	Applied bool   `json:"applied"`
}

// Up applies what is missing and returns the steps it took.
func (m *Migrator) Up(ctx context.Context) ([]Step, error) {
	if err := m.createSchema(ctx); err != nil {
		return nil, err
	}
	results, err := m.provider.Up(ctx)
	if err != nil {
		return nil, fmt.Errorf("migrate up: %w", err)
	}
	return stepsOf(results, true), nil
}

// Down takes the newest step back, and with it all that only its tables and columns
// hold; taking the first back drops every row and result. It returns no step when
// there is nothing to take back, and refuses to touch what a newer program has made.
func (m *Migrator) Down(ctx context.Context) ([]Step, error) {
	version, err := m.Version(ctx)
	if err != nil || version == 0 {
		return nil, err
	}
	if version > Needed {
		return nil, fmt.Errorf("migrate down: a newer windrow made version %d of these tables, this one knows %d: use that one", version, Needed)
	}
	result, err := m.provider.Down(ctx)
	if errors.Is(err, goose.ErrNoNextVersion) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("migrate down: %w", err)
	}
	return stepsOf([]*goose.MigrationResult{result}, false), nil
}

// Status lists all steps this program knows, in order.
func (m *Migrator) Status(ctx context.Context) ([]Step, error) {
	version, err := m.Version(ctx)
	if err != nil {
		return nil, err
	}
	var steps []Step
	for _, source := range m.provider.ListSources() {
		steps = append(steps, Step{Version: source.Version, Name: source.Path, Applied: source.Version <= version})
	}
	return steps, nil
}

// Check returns nil if the tables are there and new enough, and an error that
// wraps model.ErrSchema and names the command to run otherwise.
func (m *Migrator) Check(ctx context.Context) error {
	version, err := m.Version(ctx)
	switch {
	case err != nil:
		return err
	case version == 0:
		return &schemaError{fmt.Sprintf("%s has no windrow tables; make them with: %s", m.place(), m.remedy())}
	case version < Needed:
		return &schemaError{fmt.Sprintf("%s has windrow's tables of version %d, this program needs %d; bring them up to date with: %s",
			m.place(), version, Needed, m.remedy())}
	}
	return nil
}

// schemaError says more than model.ErrSchema does, and so not its text too.
type schemaError struct{ text string }

func (e *schemaError) Error() string { return e.text }
func (e *schemaError) Unwrap() error { return model.ErrSchema }

func (m *Migrator) place() string {
	if m.schema == "" {
		return "the file"
	}
	return fmt.Sprintf("schema %q", m.schema)
}

// remedy is the command that mends it.
func (m *Migrator) remedy() string {
	if m.schema == "" || m.schema == DefaultSchema {
		return "windrow migrate up"
	}
	return "windrow migrate up --schema " + m.schema
}

func stepsOf(results []*goose.MigrationResult, applied bool) []Step {
	steps := make([]Step, 0, len(results))
	for _, r := range results {
		steps = append(steps, Step{Version: r.Source.Version, Name: r.Source.Path, Applied: applied})
	}
	return steps
}

// render copies one engine's folder, with schema put in for its placeholder.
func render(folder, schema string) (fs.FS, error) {
	out := fstest.MapFS{}
	entries, err := files.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		text, err := files.ReadFile(folder + "/" + entry.Name())
		if err != nil {
			return nil, err
		}
		out[entry.Name()] = &fstest.MapFile{Data: bytes.ReplaceAll(text, []byte("{{schema}}"), []byte(schema))}
	}
	return out, nil
}
