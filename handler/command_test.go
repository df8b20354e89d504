package handler_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/windrow-go/windrow/handler"
	"github.com/windrow-go/windrow/model"
)

func TestCommandOutputIsTheResult(t *testing.T) {
	tests := []struct {
		line string
		want any
	}{
		{`true`, nil},
		{`printf '\n'`, ""},
		{`printf 'a'`, "a"},
		{`printf 'a\n'`, "a"},
		{`printf 'a\r\n'`, "a"},
		{`printf 'a\r'`, "a\r"},
		{`printf ' a \n\n'`, " a \n"},
		{`printf '42\n'`, "42"},
		{`printf 'null'`, "null"},
		{`printf '"a"'`, `"a"`},
		{`printf '\377\000'`, "\xff\x00"},
		{`printf '{"a": 1e400}\n'`, json.RawMessage(`{"a": 1e400}`)},
		{`printf ' \n[1,\n2]\n\n'`, json.RawMessage("[1,\n2]")},
		{`printf '{"a":1}\n{"a":2}\n'`, "{\"a\":1}\n{\"a\":2}"},
		{`printf "{'a': 1}"`, "{'a': 1}"},
		{`printf '[1'`, "[1"},
		{`cat`, json.RawMessage(`{"a":1}`)},
		{`read -r line && printf '%s' "<$line>"`, `<{"a":1}>`},
		{`echo careful >&2; echo fine`, "fine"},
	}
	for _, tt := range tests {
		t.Run(tt.line, func(t *testing.T) {
			got, err := shell(t, tt.line, `{"a":1}`)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %T %q, want %T %q", got, got, tt.want, tt.want)
			}
		})
	}
}

func TestCommandMustWriteJSONWhereDemanded(t *testing.T) {
	tests := []struct{ line, want, err string }{
		{`echo 42`, `42`, ""},
		{`echo '"a"'`, `"a"`, ""},
		{`echo null`, `null`, ""},
		{`echo '{"n":9007199254740993}'`, `{"n":9007199254740993}`, ""},
		{`true`, "", "wrote nothing"},
		{`printf ' \n'`, "", "wrote nothing"},
		{`echo "{'a': 1}"`, "", `it begins "{'a': 1}"`},
		{`printf '{}\n{}\n'`, "", "after top-level value"},
		{`echo NaN`, "", "not one JSON value"},
	}
	for _, tt := range tests {
		t.Run(tt.line, func(t *testing.T) {
			command := newCommand(t, handler.CommandOptions{Shell: tt.line, JSON: true})
			got, err := command.Handle(t.Context(), row("{}"))
			if tt.err == "" && (err != nil || string(got.(json.RawMessage)) != tt.want) {
				t.Errorf("got %s, %v, want %s", got, err, tt.want)
			}
			if tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || model.IsPermanent(err)) {
				t.Errorf("got %s, %v, want an ordinary error with %q", got, err, tt.err)
			}
		})
	}
}

func TestCommandGetsTheDataOnOneLine(t *testing.T) {
	tests := []struct{ data, want string }{
		{"{\n \"a\": \"x\\ny\"\n}", `{"a":"x\ny"}`},
		{"", "null"},
		{`"é"`, `"é"`},
	}
	for _, tt := range tests {
		got, err := shell(t, `IFS= read -r line; test -z "$(cat)"; printf '<%s>' "$line"`, tt.data)
		if want := "<" + tt.want + ">"; err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
}

func TestCommandNeedNotReadItsInput(t *testing.T) {
	data := `"` + strings.Repeat("x", 10<<20) + `"`
	for _, line := range []string{"true", "exec 0<&-; true", "head -c 1 >/dev/null"} {
		if got, err := shell(t, line, data); got != nil || err != nil {
			t.Errorf("%s: got %.20v, %v", line, got, err)
		}
	}
	got, err := shell(t, "cat", data)
	if err != nil || got != data {
		t.Errorf("cat: got %.20v, %v", got, err)
	}
}

func TestCommandExitStatus(t *testing.T) {
	tests := []struct {
		line, want string
		permanent  bool
	}{
		{`exit 3`, "exit status 3", false},
		{`echo out; echo ' boom ' >&2; exit 3`, "exit status 3: boom", false},
		{`echo 'bad row' >&2; exit 65`, "exit status 65: bad row", true},
		{`echo later >&2; exit 75`, "exit status 75: later", false},
		{`echo ow >&2; kill -KILL $$`, "killed by SIGKILL (killed): ow", false},
		{`kill -SEGV $$`, "killed by SIGSEGV (segmentation fault)", false},
	}
	for _, tt := range tests {
		t.Run(tt.line, func(t *testing.T) {
			_, err := shell(t, tt.line, "{}")
			if err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if model.IsPermanent(err) != tt.permanent {
				t.Errorf("permanent: %v, want %v", !tt.permanent, tt.permanent)
			}
		})
	}
}

func TestCommandErrorHoldsTheEndOfStderr(t *testing.T) {
	_, err := shell(t, `i=0; while [ $i -lt 2000 ]; do printf '€€€'; i=$((i+1)); done >&2; printf end >&2; exit 1`, "{}")
	text := err.Error()
	if !strings.HasPrefix(text, "exit status 1: …€") || !strings.HasSuffix(text, "€end") {
		t.Errorf("got %.40q…%q", text, text[len(text)-20:])
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, utf8.RuneError) || len(text) > 2100 || len(text) < 2000 {
		t.Errorf("%d bytes, valid: %v", len(text), utf8.ValidString(text))
	}
}

func TestCommandFloodsTakeLittleMemory(t *testing.T) {
	tests := []struct {
		line, want string
		permanent  bool
	}{
		{`yes`, "output is larger than 1048576 bytes", true},
		{`trap '' PIPE; yes 2>/dev/null; exit 1`, "output is larger than 1048576 bytes", true},
		{`head -c 1048577 /dev/zero`, "output is larger than 1048576 bytes", true},
		{`head -c 100000000 /dev/zero >&2; exit 3`, "exit status 3", false},
	}
	for _, tt := range tests {
		t.Run(tt.line, func(t *testing.T) {
			command := newCommand(t, handler.CommandOptions{Shell: tt.line, MaxOutput: 1 << 20})
			before := allocated()
			_, err := command.Handle(t.Context(), row("{}"))
			if err == nil || !strings.Contains(err.Error(), tt.want) || model.IsPermanent(err) != tt.permanent {
				t.Errorf("got %.100v", err)
			}
			if used := allocated() - before; used > 8<<20 {
				t.Errorf("%d MiB were allocated", used>>20)
			}
		})
	}
}

func TestCommandOutputUpToTheLimitIsTaken(t *testing.T) {
	command := newCommand(t, handler.CommandOptions{Shell: `head -c 1048576 /dev/zero`, MaxOutput: 1 << 20})
	got, err := command.Handle(t.Context(), row("{}"))
	if err != nil || len(got.(string)) != 1<<20 {
		t.Errorf("got %.20v, %v", got, err)
	}
}

func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

func TestCommandEnvironment(t *testing.T) {
	for _, name := range []string{"WINDROW_DATABASE_URL", "WINDROW_ROW_ID", "PGPASSWORD", "PGHOST", "DATABASE_URL", "PAGER", "OVERRIDDEN"} {
		t.Setenv(name, "inherited")
	}
	key := "k=1\x002"
	dataset := row("{}")
	dataset.Key, dataset.Job, dataset.Attempts, dataset.Round = &key, "job", 3, 2
	command := newCommand(t, handler.CommandOptions{Shell: "env", Env: []string{"PGHOST=mine", "OVERRIDDEN=mine"}})
	got, err := command.Handle(t.Context(), dataset)
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, line := range strings.Split(got.(string), "\n") {
		name, _, _ := strings.Cut(line, "=")
		if strings.HasPrefix(name, "WINDROW_") || strings.HasPrefix(name, "PG") ||
			slices.Contains([]string{"DATABASE_URL", "PAGER", "OVERRIDDEN"}, name) {
			kept = append(kept, line)
		}
	}
	slices.Sort(kept)
	want := []string{
		"DATABASE_URL=inherited",
		"OVERRIDDEN=mine",
		"PAGER=inherited",
		"PGHOST=mine",
		"WINDROW_ROW_ATTEMPT=3",
		"WINDROW_ROW_ID=7",
		"WINDROW_ROW_IDEMPOTENCY_KEY=job/7/2",
		"WINDROW_ROW_KEY=k=1\uFFFD2",
	}
	if !slices.Equal(kept, want) {
		t.Errorf("got  %q\nwant %q", kept, want)
	}
}

func TestRowWithoutKeyHasAnEmptyVariable(t *testing.T) {
	got, err := shell(t, `echo "${WINDROW_ROW_KEY?}."`, "{}")
	if err != nil || got != "." {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestCommandIsFoundOnceAndForAll(t *testing.T) {
	directory := t.TempDir()
	writeFile(t, directory+"/label", "#!/bin/sh\necho \"$0\"\n", 0o755)
	t.Chdir(directory)
	command := newCommand(t, handler.CommandOptions{Args: []string{"./label"}})
	t.Chdir("/")
	got, err := command.Handle(t.Context(), row("{}"))
	if err != nil || !strings.HasSuffix(got.(string), "/label") {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestCommandThatDoesNotStart(t *testing.T) {
	path := writeFile(t, t.TempDir()+"/label", "echo no first line\n", 0o755)
	command := newCommand(t, handler.CommandOptions{Args: []string{path}})
	_, err := command.Handle(t.Context(), row("{}"))
	if err == nil || !strings.Contains(err.Error(), "begin with a line such as #!") || model.IsPermanent(err) {
		t.Errorf("got %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, err = command.Handle(t.Context(), row("{}"))
	if !errors.Is(err, os.ErrNotExist) || model.IsPermanent(err) || !strings.HasPrefix(err.Error(), "start ") {
		t.Errorf("got %v", err)
	}
}

func TestCommandIsNotStartedAfterTheCancel(t *testing.T) {
	gone := errors.New("the claim is lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	mark := t.TempDir() + "/mark"
	_, err := newCommand(t, handler.CommandOptions{Args: []string{"touch", mark}}).Handle(ctx, row("{}"))
	if _, missing := os.Stat(mark); err != gone || !os.IsNotExist(missing) {
		t.Errorf("got %v, %v", err, missing)
	}
}
