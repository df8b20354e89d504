package handler_test

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"runtime"
	"testing"

	"go.uber.org/goleak"

	"github.com/windrow-go/windrow/handler"
	"github.com/windrow-go/windrow/model"
)

// workerVariable makes this test binary a worker that handles one row by the
// shell line that the variable holds.
const workerVariable = "HANDLER_TEST_WORKER"

func TestMain(m *testing.M) {
	if line, ok := os.LookupEnv(workerVariable); ok {
		command, err := handler.NewCommand(handler.CommandOptions{Shell: line})
		if err != nil {
			panic(err)
		}
		command.Handle(context.Background(), model.Dataset{})
		return
	}
	flag.Set("test.parallel", "8") // the parallel tests wait for timeouts most of the time
	goleak.VerifyTestMain(m)
}

// row is a row with the given data.
func row(data string) model.Dataset {
	return model.Dataset{ID: 7, Attempts: 1, Data: json.RawMessage(data)}
}

func newCommand(t *testing.T, options handler.CommandOptions) *handler.Command {
	t.Helper()
	command, err := handler.NewCommand(options)
	if err != nil {
		t.Fatal(err)
	}
	return command
}

func newJQ(t *testing.T, options handler.JQOptions) *handler.JQ {
	t.Helper()
	jq, err := handler.NewJQ(options)
	if err != nil {
		t.Fatal(err)
	}
	return jq
}

// shell handles a row of the given data by a line of shell.
func shell(t *testing.T, line, data string) (any, error) {
	t.Helper()
	return newCommand(t, handler.CommandOptions{Shell: line}).Handle(t.Context(), row(data))
}

func writeFile(t *testing.T, path, contents string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(contents), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// openFiles is how many files this process has open.
func openFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil && runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}
