package bench_test

import (
	"os"
	"testing"

	"github.com/windrow-go/windrow/bench"
)

// TestMain lets this binary be the workers of the fleets that the tests start.
func TestMain(m *testing.M) {
	if bench.IsWorker() {
		os.Exit(bench.Work(os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}
