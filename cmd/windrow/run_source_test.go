package main_test

import (
	"os"
	"strings"
	"testing"
)

func TestRunWorksTheRowsOfItsInputAndNoOthers(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("a.csv", "n\n1\n2\n")
	p.write("b.csv", "n\n3\n")
	p.ok("run", "a.csv", "b.csv", "--jq", ".")
	p.run("run", "a.csv", "--jq", ".").wants(2, "a.csv, b.csv", "--database", "--fresh")
	p.run("run", "b.csv", "--jq", ".", "--database", "a.windrow.db").wants(2, "other rows")
	if got := strings.Count(p.read("a.results.jsonl"), "\n"); got != 3 {
		t.Errorf("%d results, want 3", got)
	}
	p.ok("run", "a.csv", "--jq", ".", "--fresh")
	if got := strings.Count(p.read("a.results.jsonl"), "\n"); got != 2 {
		t.Errorf("%d results after --fresh, want 2", got)
	}
}

func TestRunLeavesTheFleetsRowsAlone(t *testing.T) {
	t.Parallel()
	p := newFleet(t)
	p.write("fleet.csv", "n\n1\n")
	p.write("mine.csv", "n\n2\n")
	p.ok("load", "fleet.csv")
	p.run("run", "mine.csv", "--jq", ".").wants(2, "other rows")
	p.ok("status", "--json").prints(`"fresh":1`)
}

func TestARunIsMovedWithItsFolder(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	if err := os.Mkdir(p.path("before"), 0o755); err != nil {
		t.Fatal(err)
	}
	p.write("before/a.csv", "n\n1\n2\n")
	p.ok("run", "before/a.csv", "--jq", ".")
	if err := os.Rename(p.path("before"), p.path("after")); err != nil {
		t.Fatal(err)
	}
	p.ok("run", "after/a.csv", "--jq", ".")
	if got := strings.Count(p.read("after/a.results.jsonl"), "\n"); got != 2 {
		t.Errorf("%d results, want 2", got)
	}
}

func TestAChangedFileIsNotLoadedAgainByAccident(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("a.csv", "n\n1\n2\n")
	p.ok("load", "a.csv")
	p.write("a.csv", "n\n1\n3\n")
	p.run("load", "a.csv").wants(1, "changed", "--again")
	p.ok("load", "a.csv", "--again")
	p.ok("status", "--json").prints(`"fresh":4`)
}

func TestAWrongKeyAtTheFirstStartIsNoTrap(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("a.csv", "n\n1\n")
	p.run("run", "a.csv", "--jq", ".", "--key", "m").wants(1, `"m"`)
	p.ok("run", "a.csv", "--jq", ".", "--key", "n")
	p.run("run", "a.csv", "--jq", ".").wants(2, "--key", "--continue", "--fresh")
}
