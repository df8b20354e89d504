package report_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windrow-go/windrow/bench/report"
)

func TestReadTakesLinesAndArraysInOrderOfNames(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "b.jsonl", `{"scenario": "drain", "subject": "second", "a field of tomorrow": [1]}`+"\n\n"+
		`{"scenario": "drain", "subject": "third"}`)
	put(t, dir, "c/d.json", "[\n"+`{"scenario": "drain", "subject": "fourth"},`+"\n"+`{"scenario": "drain",`+"\n"+`"subject": "fifth"}]`+"\n")
	put(t, dir, "a.json", `{"scenario": "drain", "subject": "first"}`)
	put(t, dir, "empty.json", "")
	put(t, dir, "notes.txt", "no JSON")
	results, err := report.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range results {
		got = append(got, r.Subject)
	}
	if want := "first second third fourth fifth"; strings.Join(got, " ") != want {
		t.Errorf("read %q, want %s", got, want)
	}
}

func TestReadNamesFileAndLineOfWhatIsBroken(t *testing.T) {
	const good = `{"scenario": "drain"}` + "\n"
	tests := map[string]struct {
		text string
		line string
	}{
		"no JSON":                        {good + good + "oops\n" + good, "line 3:"},
		"cut short":                      {good + `{"scenario": "dr` + "\n" + good, "line 2:"},
		"cut short at the end":           {good + good + `{"scenario": "drain", `, "line 3:"},
		"a value of another type":        {good + "\n" + `{"scenario": "drain", "round": "one"}`, "line 3:"},
		"something else than a result":   {good + `{"name": "x"}`, "line 2:"},
		"an array's second":              {"[\n" + `{"scenario": "drain"},` + "\n" + `{"scenario": 7}]`, "line 3:"},
		"an array that does not end":     {"[\n" + good, "line 3:"},
		"a bracket that ends no array":   {good + "]", "line 2:"},
		"a number where a result is due": {"7", "line 1:"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, "broken.jsonl", tt.text)
			results, err := report.Read(dir)
			if err == nil {
				t.Fatalf("no error, but %d results", len(results))
			}
			if text := err.Error(); !strings.Contains(text, "broken.jsonl") || !strings.Contains(text, tt.line) {
				t.Errorf("error %q names not broken.jsonl and %s", text, tt.line)
			}
		})
	}
}

func TestReadNeedsTheFolder(t *testing.T) {
	if _, err := report.Read(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a folder that isn't there was read")
	}
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}
