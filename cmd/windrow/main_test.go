package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
)

// program is the path of the windrow under test: the real one, built once. The
// watched one has the race detector in it if the tests have; it takes about three
// times as long. Variables of the package, because tests have no other place in
// common.
var program, watchedProgram string

func TestMain(m *testing.M) { os.Exit(withProgram(func() int { return pgtest.Run(m) })) }

// withProgram builds the program, runs the tests and takes it away again.
func withProgram(tests func() int) int {
	folder, err := os.MkdirTemp("", "windrow-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	program = filepath.Join(folder, "windrow")
	watchedProgram = program
	err = build("-o", program)
	if err == nil && underRace {
		watchedProgram = filepath.Join(folder, "watched", "windrow")
		err = build("-o", watchedProgram, "-race")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return tests()
}

func build(flags ...string) error {
	args := append(append([]string{"build"}, flags...), ".")
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return nil
}
