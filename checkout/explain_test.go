package checkout_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// plan is a node of a plan as auto_explain writes it.
type plan struct {
	Type     string `json:"Node Type"`
	Relation string `json:"Relation Name"`
	Index    string `json:"Index Name"`
	Plans    []plan
}

// logged is one statement in a server's log, with the plan that it was run by.
type logged struct {
	Session string // the server process
	Text    string `json:"Query Text"`
	Plan    plan
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

// scans lists every way in which the plan reads the table, such as "Index Scan
// datasets_pkey".
func (p plan) scans(relation string) []string {
	var list []string
	p.each(func(n plan) {
		if n.Relation == relation && n.Type != "ModifyTable" {
			list = append(list, strings.TrimSpace(n.Type+" "+n.Index))
		}
	})
	slices.Sort(list)
	return slices.Compact(list)
}

func (p plan) types() []string {
	var list []string
	p.each(func(n plan) { list = append(list, n.Type) })
	return list
}

func (p plan) each(visit func(plan)) {
	visit(p)
	for _, child := range p.Plans {
		child.each(visit)
	}
}

func (p plan) String() string {
	var lines []string
	p.each(func(n plan) { lines = append(lines, fmt.Sprintf("%s %s %s", n.Type, n.Relation, n.Index)) })
	return strings.Join(lines, "; ")
}
