package handler_test

import (
	"strings"
	"testing"

	"github.com/windrow-go/windrow/handler"
	"github.com/windrow-go/windrow/model"
)

const airport = `{"iata":"JFK","name":"O'Hare \"$HOME\" *; rm","path":"a b/ü","Airport Name":"Kennedy","größe":1.50,` +
	`"n":9007199254740993,"ok":true,"none":null,"tags":["a", {"b": 1}],"a.b-c":"x","empty":"","nl":"1\n2","_":"u"}`

func TestFieldsArePutIntoArguments(t *testing.T) {
	tests := []struct{ argument, want string }{
		{"{iata}", "JFK"},
		{"--code={iata}!", "--code=JFK!"},
		{"{iata}{iata}-{n}", "JFKJFK-9007199254740993"},
		{"{name}", `O'Hare "$HOME" *; rm`},
		{"{path}", "a b/ü"},
		{"{Airport Name}", "Kennedy"},
		{"{größe}", "1.50"},
		{"{ok} {none}", "true null"},
		{"{tags}", `["a",{"b":1}]`},
		{"{a.b-c}", "x"},
		{"{empty}", ""},
		{"{nl}", "1\n2"},
		{"{_}", "u"},
		{"{{iata}}", "{iata}"},
		{"{{{iata}}}", "{{iata}}"},
		{"{iata}}", "JFK}"},
		{"{{iata}", "{JFK"},
		{`{"x":{n}}`, `{"x":9007199254740993}`},
		{"{}", "{}"},
		{"{", "{"},
		{"{ iata }", "{ iata }"},
		{"{iata", "{iata"},
		{`{"a":1}`, `{"a":1}`},
		{`{"a":{"b":1}}`, `{"a":{"b":1}}`},
		{"{print $1}", "{print $1}"},
		{"{a,b}", "{a,b}"},
		{"x{2,3}", "x{2,3}"},
		{"x{2}", "x{2}"},
		{"${HOME}", "${HOME}"},
		{"{{.Name}}", "{{.Name}}"},
		{"{{json .}}", "{{json .}}"},
		{"{{ iata }}", "{{ iata }}"},
	}
	for _, tt := range tests {
		t.Run(tt.argument, func(t *testing.T) {
			command := newCommand(t, handler.CommandOptions{Args: []string{"printf", "<%s><%s>", tt.argument, "end"}})
			got, err := command.Handle(t.Context(), row(airport))
			if err != nil {
				t.Fatal(err)
			}
			if want := "<" + tt.want + "><end>"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestFieldThatCannotBeAnArgumentFailsTheRowForGood(t *testing.T) {
	long := `{"a":"` + strings.Repeat("x", 3<<20) + `"}`
	tests := []struct{ name, argument, data, want string }{
		{"no such field", "{print}", airport, `the row has no field "print", which an argument of the command names (for braces as text write {{print}})`},
		{"other case", "{IATA}", airport, `no field "IATA"`},
		{"array", "{a}", `[1]`, "the data is not an object"},
		{"string", "{a}", `"a"`, "the data is not an object"},
		{"null", "{a}", `null`, `no field "a"`},
		{"nothing", "{a}", ``, "the data is not an object"},
		{"NUL", "{a}", `{"a":"x\u0000y"}`, `field "a": it has a NUL`},
		{"too long", "{a}", long, "argument list too long: let it read the row from standard input"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			command := newCommand(t, handler.CommandOptions{Args: []string{"printf", tt.argument}})
			got, err := command.Handle(t.Context(), row(tt.data))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, %v, want %q", got, err, tt.want)
			}
			if !model.IsPermanent(err) {
				t.Error("the error is not permanent")
			}
		})
	}
}

func TestShellLineIsLeftAsItIs(t *testing.T) {
	got, err := shell(t, `printf '{iata}{{iata}}'`, airport)
	if err != nil || got != "{iata}{{iata}}" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestNewCommandRefusesWhatCannotWork(t *testing.T) {
	plain := writeFile(t, t.TempDir()+"/plain", "text", 0o644)
	tests := []struct {
		name    string
		options handler.CommandOptions
		want    string
	}{
		{"nothing", handler.CommandOptions{}, "none to run"},
		{"blank", handler.CommandOptions{Shell: "  "}, "none to run"},
		{"both", handler.CommandOptions{Args: []string{"true"}, Shell: "true"}, "either"},
		{"unknown", handler.CommandOptions{Args: []string{"no-such-command"}}, `"no-such-command": executable file not found`},
		{"no such path", handler.CommandOptions{Args: []string{"./no-such-command"}}, "no such file"},
		{"not executable", handler.CommandOptions{Args: []string{plain}}, "permission denied"},
		{"program from the row", handler.CommandOptions{Args: []string{"{cmd}"}}, "can't depend on the row"},
		{"code for a shell", handler.CommandOptions{Args: []string{"sh", "-ec", "echo {iata}"}}, `write "$1"`},
		{"code behind options", handler.CommandOptions{Args: []string{"/bin/sh", "-o", "errexit", "-c", "echo {iata}"}}, `write "$1"`},
		{"timeout", handler.CommandOptions{Args: []string{"true"}, Timeout: -1}, "negative"},
		{"output limit", handler.CommandOptions{Args: []string{"true"}, MaxOutput: -1}, "negative"},
		{"NUL", handler.CommandOptions{Args: []string{"true", "a\x00b"}}, "argument 1 has a NUL"},
		{"variable", handler.CommandOptions{Args: []string{"true"}, Env: []string{"secret"}}, "NAME=VALUE"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := handler.NewCommand(tt.options); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestShellTakesFieldsAsParameters(t *testing.T) {
	command := newCommand(t, handler.CommandOptions{Args: []string{"sh", "-c", `printf '%s' "$1 ${HOME+set}"`, "sh", "{name}"}})
	t.Setenv("HOME", "/")
	got, err := command.Handle(t.Context(), row(airport))
	if err != nil || !strings.HasPrefix(got.(string), `O'Hare "$HOME" *; rm`) {
		t.Errorf("got %q, %v", got, err)
	}
}
