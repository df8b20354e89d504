package handler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windrow-go/windrow/handler"
	"github.com/windrow-go/windrow/model"
)

const numbers = `{"n":9007199254740993,"big":123456789012345678901234567890,"far":1e400,"price":1.10,"s":"é<&>"}`

func TestJQGivesItsOneOutput(t *testing.T) {
	tests := []struct{ program, want string }{
		{".", `{"big":123456789012345678901234567890,"far":1e400,"n":9007199254740993,"price":1.10,"s":"é<&>"}`},
		{".n", "9007199254740993"},
		{"{a: .n}", `{"a":9007199254740993}`},
		{".n + 1", "9007199254740994"},
		{".n * .n", "81129638414606699710187514626049"},
		{".big + 1", "123456789012345678901234567891"},
		{".far", "1e400"},
		{".far + 1", "1.7976931348623157e+308"},
		{".price", "1.10"},
		{".price + 0", "1.1"},
		{"[.n, .far] | tojson", `"[9007199254740993,1e400]"`},
		{"nan", "null"},
		{"[nan, infinite, -infinite]", "[null,1.7976931348623157e+308,-1.7976931348623157e+308]"},
		{".missing", "null"},
		{"empty", "null"},
		{"halt", "null"},
		{"1, halt, 2", "1"},
		{"try error(null) catch .", "null"},
		{"label $out | 1, break $out", "1"},
		{"first(range(infinite))", "0"},
		{"now | type", `"number"`},
		{`"\u0000"`, `"\u0000"`},
		{"reduce range(10000) as $i (null; [.]) | 1", "1"},
	}
	for _, tt := range tests {
		t.Run(tt.program, func(t *testing.T) {
			got, err := newJQ(t, handler.JQOptions{Program: tt.program}).Handle(t.Context(), row(numbers))
			if err != nil {
				t.Fatal(err)
			}
			if text := string(got.(json.RawMessage)); text != tt.want {
				t.Errorf("got %s, want %s", text, tt.want)
			}
		})
	}
}

func TestJQErrorFailsTheRowForGood(t *testing.T) {
	tests := []struct{ program, want string }{
		{".s.x", "expected an object but got: string"},
		{`error("no such thing")`, "jq: error: no such thing"},
		{"error(null)", "jq: error: null"},
		{`1, error("late")`, "jq: error: late"},
		{`"stop" | halt_error`, "jq: halt error: stop"},
		{"null | halt_error", "jq: halt error: null"},
		{"1, 2, 3", "3 outputs for one row: wrap it in [...]"},
		{"range(infinite)", "more than 10 outputs for one row"},
		{"repeat(1)", "more than 10 outputs for one row"},
		{"reduce range(10001) as $i (null; [.])", "nested deeper than 10000"},
		{"reduce range(10001) as $i (null; {a: .})", "nested deeper than 10000"},
	}
	for _, tt := range tests {
		t.Run(tt.program, func(t *testing.T) {
			_, err := newJQ(t, handler.JQOptions{Program: tt.program}).Handle(t.Context(), row(numbers))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			if !model.IsPermanent(err) {
				t.Error("the error is not permanent")
			}
		})
	}
}

func TestJQRefusesBadData(t *testing.T) {
	jq := newJQ(t, handler.JQOptions{Program: "."})
	for _, data := range []string{"{", "1 2", strings.Repeat("[", 20_000)} {
		if got, err := jq.Handle(t.Context(), row(data)); !model.IsPermanent(err) {
			t.Errorf("%.10s: got %v, %v, want a permanent error", data, got, err)
		}
	}
}

func TestNewJQSaysWhatIsWrong(t *testing.T) {
	tests := []struct {
		options handler.JQOptions
		want    string
	}{
		{handler.JQOptions{Program: " \n"}, "it is empty"},
		{handler.JQOptions{Program: ".a | | .b"}, "line 1, column 6: unexpected token \"|\"\n    .a | | .b\n         ^"},
		{handler.JQOptions{Program: "\"é\" |\n\t\"ö\" }"}, "line 2, column 6: unexpected token \"}\"\n    \t\"ö\" }\n    \t    ^"},
		{handler.JQOptions{Program: "{a:"}, "line 1, column 4: unexpected EOF"},
		{handler.JQOptions{Program: `"abc`}, "unterminated string"},
		{handler.JQOptions{Program: "nothing(1)"}, "function not defined: nothing/1"},
		{handler.JQOptions{Program: "$unit"}, "variable not defined: $unit"},
		{handler.JQOptions{Program: "[., input]"}, "a program sees one row at a time"},
		{handler.JQOptions{Program: "[inputs]"}, "a program sees one row at a time"},
		{handler.JQOptions{Program: "env.HOME"}, "env and $ENV hold nothing here"},
		{handler.JQOptions{Program: "$ENV.HOME"}, "env and $ENV hold nothing here"},
		{handler.JQOptions{Program: `import "m" as m; .`}, "cannot load module"},
		{handler.JQOptions{Program: ".", Timeout: -1}, "negative"},
		{handler.JQOptions{Program: ".", Args: map[string]string{"a b": ""}}, `"a b"`},
		{handler.JQOptions{Program: ".", Args: map[string]string{"ARGS": ""}}, `"ARGS"`},
		{handler.JQOptions{Program: ".", JSONArgs: map[string]json.RawMessage{"x": nil}}, "empty"},
		{handler.JQOptions{Program: ".", JSONArgs: map[string]json.RawMessage{"x": []byte("1 2")}}, "not JSON"},
		{handler.JQOptions{
			Program:  ".",
			Args:     map[string]string{"x": "1"},
			JSONArgs: map[string]json.RawMessage{"x": []byte("1")},
		}, "both as a string and as JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.options.Program, func(t *testing.T) {
			_, err := handler.NewJQ(tt.options)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestJQKnowsItsArguments(t *testing.T) {
	jq := newJQ(t, handler.JQOptions{
		Program:  "[$unit, $factor, $ARGS]",
		Args:     map[string]string{"unit": "m"},
		JSONArgs: map[string]json.RawMessage{"factor": []byte("9007199254740993")},
	})
	got, err := jq.Handle(t.Context(), row("null"))
	if err != nil {
		t.Fatal(err)
	}
	want := `["m",9007199254740993,{"named":{"factor":9007199254740993,"unit":"m"},"positional":[]}]`
	if text := string(got.(json.RawMessage)); text != want {
		t.Errorf("got %s, want %s", text, want)
	}
}

func TestJQEndsWithItsContext(t *testing.T) {
	gone := errors.New("the claim is lost")
	for _, program := range []string{"def f: f; f", "last(range(infinite))", "try (def f: f; f) catch 1", "."} {
		t.Run(program, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(gone)
			_, err := newJQ(t, handler.JQOptions{Program: program}).Handle(ctx, row("1"))
			if !errors.Is(err, gone) || model.IsPermanent(err) {
				t.Errorf("got %v, want the context's cause", err)
			}
		})
	}
}

func TestJQTimesOut(t *testing.T) {
	jq := newJQ(t, handler.JQOptions{Program: "def f: f; f", Timeout: 20 * time.Millisecond})
	_, err := jq.Handle(t.Context(), row("1"))
	if err == nil || err.Error() != "timed out after 20ms" || model.IsPermanent(err) {
		t.Errorf("got %v", err)
	}
}

func TestJQServesManyGoroutines(t *testing.T) {
	jq := newJQ(t, handler.JQOptions{
		Program:  `$table | .list += [$ARGS.named.table.list | length] | .list | sort | map(tostring) | join(",") | sub("a"; "b")`,
		JSONArgs: map[string]json.RawMessage{"table": []byte(`{"list":[3,2,1]}`)},
	})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 1000 {
				got, err := jq.Handle(t.Context(), row("1"))
				if err != nil || string(got.(json.RawMessage)) != `"1,2,3,3"` {
					t.Errorf("got %s, %v", got, err)
					return
				}
			}
		})
	}
	group.Wait()
}

func TestJQMemoryDoesNotGrowWithPatternsFromData(t *testing.T) {
	jq := newJQ(t, handler.JQOptions{Program: `.p as $p | "x" | test($p)`})
	before := heap()
	for i := range 16_000 {
		data := fmt.Sprintf(`{"p":"^(row|line)-%d-[a-z]{1,20}(alpha|beta|gamma)$"}`, i)
		if _, err := jq.Handle(t.Context(), row(data)); err != nil {
			t.Fatal(err)
		}
	}
	if grown := int64(heap()) - int64(before); grown > 32<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	runtime.KeepAlive(jq)
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
