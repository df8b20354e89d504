package checkout_test

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"github.com/windrow-go/windrow/checkout"
)

// logged is one statement in a server's log, with the plan that it was run by.
type logged struct {
	Session string // the server process
	Text    string `json:"Query Text"`
	Plan    checkout.Plan
}

// planLine is a log entry that holds a plan: lines that go on are indented.
var planLine = regexp.MustCompile(`(?m)^.* \[(\d+)\] .* plan:\n((?:\t.*\n)+)`)

// statementsIn reads the plans in a server's log, in the order of execution.
func statementsIn(t testing.TB, path string) []logged {
	t.Helper()
	text, err := os.ReadFile(path)
	check(t, err)
	var all []logged
	for _, entry := range planLine.FindAllSubmatch(text, -1) {
		one := logged{Session: string(entry[1])}
		check(t, json.Unmarshal(entry[2], &one))
		all = append(all, one)
	}
	return all
}
