package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// BinVariable is the environment variable that names the folder holding initdb
// and postgres. It is believed before any search.
const BinVariable = "WINDROW_POSTGRES_BIN"

// ErrNoPrograms says that PostgreSQL's server programs are not on this machine.
var ErrNoPrograms = errors.New("PostgreSQL's server programs (initdb, postgres) are not to be found")

const installHint = "install them (Debian, Ubuntu: apt-get install postgresql; Fedora: dnf install postgresql-server; " +
	"Alpine: apk add postgresql; macOS: brew install postgresql) or set " + BinVariable + " to their folder"

// Programs returns the folder that holds initdb and postgres: the one named by
// WINDROW_POSTGRES_BIN, else the one that PATH leads to (through symbolic links),
// else what pg_config says, else the newest of the usual places of packages.
func Programs(ctx context.Context) (string, error) {
	if named := os.Getenv(BinVariable); named != "" {
		if !holdsPrograms(named) {
			return "", fmt.Errorf("%s=%s: initdb or postgres is missing there: %w", BinVariable, named, ErrNoPrograms)
		}
		return named, nil
	}
	for _, folder := range slices.Concat(foldersFromPath(), foldersFromConfig(ctx), foldersOfPackages()) {
		if holdsPrograms(folder) {
			return folder, nil
		}
	}
	return "", fmt.Errorf("%w: %s", ErrNoPrograms, installHint)
}

func holdsPrograms(folder string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(folder, name)); err != nil {
			return false
		}
	}
	return true
}

// foldersFromPath follows links, since a link to initdb alone may stand in PATH
// while initdb wants to find postgres beside itself.
func foldersFromPath() []string {
	found, err := exec.LookPath("initdb")
	if err != nil {
		return nil
	}
	folders := []string{filepath.Dir(found)}
	if target, err := filepath.EvalSymlinks(found); err == nil {
		folders = append([]string{filepath.Dir(target)}, folders...)
	}
	return folders
}

func foldersFromConfig(ctx context.Context) []string {
	said, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output()
	if err != nil {
		return nil
	}
	return []string{strings.TrimSpace(string(said))}
}

// foldersOfPackages lists where distributions put the programs, newest first.
func foldersOfPackages() []string {
	var folders []string
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin"} {
		matches, err := filepath.Glob(pattern)
		if err != nil {
			continue
		}
		folders = append(folders, matches...)
	}
	slices.SortStableFunc(folders, func(a, b string) int { return majorVersion(b) - majorVersion(a) })
	return folders
}

// majorVersion reads the 15 of /usr/lib/postgresql/15/bin; 0 when there is none.
func majorVersion(folder string) int {
	name := filepath.Base(filepath.Dir(folder))
	digits := name[strings.LastIndexAny(name, "-@")+1:]
	version, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return version
}
