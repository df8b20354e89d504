package handler_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/windrow-go/windrow/handler"
)

func commandPrint(t *testing.T, args ...string) string {
	t.Helper()
	return newCommand(t, handler.CommandOptions{Args: args}).Fingerprint()
}

func shellPrint(t *testing.T, line string) string {
	t.Helper()
	return newCommand(t, handler.CommandOptions{Shell: line}).Fingerprint()
}

func TestFingerprintStaysTheSame(t *testing.T) {
	if got := newJQ(t, handler.JQOptions{Program: "."}).Fingerprint(); got != "a3d5209183d8" {
		t.Errorf("jq: got %s", got)
	}
	if got := commandPrint(t, "cat", "{name}"); got != "9a02cfc631bd" {
		t.Errorf("command: got %s", got)
	}
	if got := shellPrint(t, "cat"); got != "869e41ae8b1d" {
		t.Errorf("shell: got %s", got)
	}
}

func TestJQFingerprintTellsHandlersApart(t *testing.T) {
	seen := map[string]int{}
	for i, options := range []handler.JQOptions{
		{Program: "."},
		{Program: ". "},
		{Program: ".", Args: map[string]string{"a": "1"}},
		{Program: ".", Args: map[string]string{"a": "2"}},
		{Program: ".", Args: map[string]string{"b": "1"}},
		{Program: ".", Args: map[string]string{"a": "1", "b": "1"}},
		{Program: ".", JSONArgs: map[string]json.RawMessage{"a": []byte("1")}},
	} {
		print := newJQ(t, options).Fingerprint()
		if other, ok := seen[print]; ok {
			t.Errorf("%d and %d are both %s", other, i, print)
		}
		seen[print] = i
	}
	limited := newJQ(t, handler.JQOptions{Program: ".", Timeout: time.Second}).Fingerprint()
	if seen[limited] != 0 || len(limited) != 12 {
		t.Errorf("a timeout makes another handler: %s", limited)
	}
}

func TestCommandFingerprintTellsHandlersApart(t *testing.T) {
	seen := map[string]int{}
	for i, options := range []handler.CommandOptions{
		{Args: []string{"echo", "a", "bc"}},
		{Args: []string{"echo", "ab", "c"}},
		{Args: []string{"echo", "ab c"}},
		{Shell: "echo ab c"},
		{Shell: "echo ab c", JSON: true},
	} {
		print := newCommand(t, options).Fingerprint()
		if other, ok := seen[print]; ok {
			t.Errorf("%d and %d are both %s", other, i, print)
		}
		seen[print] = i
	}
}

func TestEditedScriptChangesTheFingerprint(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("PATH", ".:"+os.Getenv("PATH"))
	if err := os.Mkdir("bin", 0o755); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, file string
		print      func() string
	}{
		{"argument by name", "label.py", func() string { return commandPrint(t, "cat", "-u", "label.py", "{name}") }},
		{"argument by #!", "label", func() string { return commandPrint(t, "cat", "label") }},
		{"program by path", "bin/run", func() string { return commandPrint(t, "bin/run") }},
		{"word of a shell line", "label.sh", func() string { return shellPrint(t, `cat <"label.sh"|wc`) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			writeFile(t, tt.file, "#!/bin/sh\necho 1\n", 0o755)
			first := tt.print()
			if again := tt.print(); again != first {
				t.Errorf("%s, then %s, without a change", first, again)
			}
			writeFile(t, tt.file, "#!/bin/sh\necho 2\n", 0o755)
			if edited := tt.print(); edited == first {
				t.Errorf("still %s after the edit", edited)
			}
		})
	}
}

func TestScriptFoundInPathCounts(t *testing.T) {
	directory := t.TempDir()
	t.Setenv("PATH", directory+":"+os.Getenv("PATH"))
	writeFile(t, directory+"/label", "#!/bin/sh\necho 1\n", 0o755)
	first := commandPrint(t, "label")
	writeFile(t, directory+"/label", "#!/bin/sh\necho 2\n", 0o755)
	if edited := commandPrint(t, "label"); edited == first {
		t.Errorf("still %s after the edit", edited)
	}
}

func TestFileThatTheCommandWritesDoesNotChangeTheFingerprint(t *testing.T) {
	t.Chdir(t.TempDir())
	prints := func() [2]string {
		return [2]string{commandPrint(t, "tee", "-a", "out.log"), shellPrint(t, "cat >> out.log")}
	}
	first := prints()
	writeFile(t, "out.log", "a result\n", 0o644)
	if later := prints(); later != first {
		t.Errorf("%s, then %s", first, later)
	}
}
