package main_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
)

// place is where a test runs the program: a folder, and a database.
type place struct {
	t        *testing.T
	program  string
	dir      string
	database string // the address that the environment names; empty: none
	env      []string
}

// newPlace is an empty folder, and the default database in it.
func newPlace(t *testing.T) *place {
	t.Helper()
	return &place{t: t, program: watchedProgram, dir: t.TempDir()}
}

// newPlainPlace is one where the race detector does not watch the program: for
// many short runs, of which the words and the files matter.
func newPlainPlace(t *testing.T) *place {
	t.Helper()
	p := newPlace(t)
	p.program = program
	return p
}

// newFleet is an empty folder, and a PostgreSQL database with windrow's tables.
func newFleet(t *testing.T) *place {
	t.Helper()
	p := newPlace(t)
	p.database = pgtest.Clone(t, template(t))
	return p
}

// migrated is the database that the others are copied from: migrating each would
// take longer. A variable of the package, like the cluster that it stands in.
var migrated struct {
	once sync.Once
	name string
	err  error
}

func template(t *testing.T) string {
	t.Helper()
	migrated.once.Do(func() {
		cluster := pgtest.Shared(t)
		const name = "windrow_template"
		if migrated.err = cluster.CreateDatabase(context.Background(), name, ""); migrated.err == nil {
			p := newPlace(t)
			p.database = cluster.URL(name)
			p.ok("migrate", "up")
			migrated.name = name
		}
	})
	if migrated.name == "" {
		t.Fatalf("no template: %v", migrated.err)
	}
	return migrated.name
}

// onEachEngine runs a test on PostgreSQL and on SQLite.
func onEachEngine(t *testing.T, test func(t *testing.T, p *place)) {
	t.Helper()
	t.Parallel()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, newFleet(t))
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, newPlace(t))
	})
}

// environment is the test's own without what windrow or libpq would read. The
// race detector would sleep a second at each exit.
func (p *place) environment() []string {
	var env []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "WINDROW_") && !strings.HasPrefix(variable, "PG") {
			env = append(env, variable)
		}
	}
	if p.database != "" {
		env = append(env, "WINDROW_DATABASE_URL="+p.database)
	}
	return append(append(env, "GORACE=atexit_sleep_ms=0"), p.env...)
}

// path is a file's path in the place.
func (p *place) path(name string) string { return filepath.Join(p.dir, name) }

// write makes a file in the place.
func (p *place) write(name, content string) {
	p.t.Helper()
	if err := os.WriteFile(p.path(name), []byte(content), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// read returns a file's content.
func (p *place) read(name string) string {
	p.t.Helper()
	content, err := os.ReadFile(p.path(name))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(content)
}

// has tells whether there is a file of that name.
func (p *place) has(name string) bool {
	_, err := os.Stat(p.path(name))
	return err == nil
}

// remove takes a file away.
func (p *place) remove(name string) {
	p.t.Helper()
	if err := os.Remove(p.path(name)); err != nil {
		p.t.Fatal(err)
	}
}

// files are the names of everything in the place that matches the pattern.
func (p *place) files(pattern string) []string {
	p.t.Helper()
	paths, err := filepath.Glob(p.path(pattern))
	if err != nil {
		p.t.Fatal(err)
	}
	for i := range paths {
		paths[i] = filepath.Base(paths[i])
	}
	return paths
}

// lines are the lines of a file that may not be there yet.
func (p *place) lines(name string) []string {
	content, err := os.ReadFile(p.path(name))
	if err != nil {
		return nil
	}
	return strings.Fields(string(content))
}

// numbers are n rows of JSON Lines: {"n":1} and so on.
func numbers(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "{\"n\":%d}\n", i)
	}
	return b.String()
}

// load loads n rows of numbers.
func (p *place) load(n int) {
	p.t.Helper()
	p.write("rows.jsonl", numbers(n))
	p.ok("load", "rows.jsonl")
}

// withPassword is a database's address with another user and password in it.
func withPassword(t *testing.T, address, user, password string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, password)
	return u.String()
}
