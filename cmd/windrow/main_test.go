package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
)

// program is the path of the windrow under test: the real one, built once. A
// variable of the package, because tests have no other place in common.
var program string

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
	args := []string{"build", "-o", program}
	if underRace {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, ".")...).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the program: %v\n%s", err, out)
		return 1
	}
	return tests()
}
