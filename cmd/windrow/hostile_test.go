package main_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// hostile is what a handler may say, and what must become of its row.
type hostile struct {
	script string // of sh
	state  string // done or failed
	result string // exactly, for done; "" is not looked at
	says   string // a word of the error, or of the remark beside a result
	size   int    // of the result's text at least
}

// hostiles are handlers' outputs by the name of their row.
var hostiles = map[string]hostile{
	"good-1":            {script: `printf '{"n": 1}'`, state: "done", result: `{"n":1}`},
	"good-2":            {script: `printf two`, state: "done", result: `"two"`},
	"nul":               {script: `printf 'a\000b'`, state: "done", result: `"a` + "\ufffd" + `b"`, says: "1 NUL character replaced"},
	"nul-escaped":       {script: `printf '{"a":"x\\u0000"}'`, state: "done", result: `{"a":"x` + "\ufffd" + `"}`, says: "NUL"},
	"lone-surrogate":    {script: `printf '["\\ud800"]'`, state: "done", result: `["` + "\ufffd" + `"]`, says: "surrogate"},
	"not-utf8":          {script: `printf '\377\376'`, state: "done", result: `"` + "\ufffd\ufffd" + `"`, says: "UTF-8"},
	"not-utf8-in-json":  {script: `printf '{"a":"\377"}'`, state: "done", result: `{"a":"` + "\ufffd" + `"}`, says: "UTF-8"},
	"5-megabytes":       {script: `head -c 5000000 /dev/zero | tr '\000' x`, state: "done", size: 5_000_002},
	"5-megabytes-json":  {script: `printf '["'; head -c 5000000 /dev/zero | tr '\000' x; printf '"]'`, state: "done", size: 5_000_004},
	"deep-20000":        {script: nested(20_000)},
	"deep-5000":         {script: nested(5_000), state: "failed", says: "deep"},
	"deep-900":          {script: nested(900), state: "done", result: strings.Repeat("[", 900) + strings.Repeat("]", 900)},
	"2^53+1":            {script: `printf '[9007199254740993]'`, state: "done", result: `[9007199254740993]`},
	"1e400":             {script: `printf '[1e400]'`, state: "done"},
	"1e200000":          {script: `printf '[1e200000]'`, state: "failed", says: "number"},
	"nan":               {script: `printf NaN`, state: "done", result: `"NaN"`},
	"nan-in-an-array":   {script: `printf '[NaN]'`, state: "done", result: `"[NaN]"`},
	"nothing":           {script: `:`, state: "done", result: `null`},
	"error-nul":         {script: `printf 'bad\000thing' >&2; exit 65`, state: "failed", says: "thing"},
	"error-not-utf8":    {script: `printf 'bad\377thing' >&2; exit 65`, state: "failed", says: "thing"},
	"error-5-megabytes": {script: `head -c 5000000 /dev/zero | tr '\000' x >&2; exit 65`, state: "failed", says: "xxx"},
	"error-deep":        {script: nested(20_000) + ` >&2; exit 65`, state: "failed", says: "exit status 65"},
	"killed":            {script: `kill -9 $$`, state: "failed", says: "SIGKILL"},
}

// nested is n arrays within each other.
func nested(n int) string {
	return fmt.Sprintf(`{ head -c %d /dev/zero | tr '\000' '['; head -c %d /dev/zero | tr '\000' ']'; }`, n, n)
}

// demanding are the same where --exec-json demands JSON.
var demanding = map[string]hostile{
	"good":        {script: `printf 1`, state: "done", result: `1`},
	"nan":         {script: `printf NaN`, state: "failed", says: "not one JSON value"},
	"nan-inside":  {script: `printf '{"a":NaN}'`, state: "failed", says: "not one JSON value"},
	"infinity":    {script: `printf -- -Infinity`, state: "failed", says: "not one JSON value"},
	"1e400":       {script: `printf 1e400`, state: "done"},
	"1e200000":    {script: `printf 1e200000`, state: "failed", says: "number"},
	"2^53+1":      {script: `printf 9007199254740993`, state: "done", result: `9007199254740993`},
	"deep-20000":  {script: nested(20_000), state: "failed", says: "depth"},
	"two-values":  {script: `printf '1 2'`, state: "failed", says: "not one JSON value"},
	"nothing":     {script: `:`, state: "failed", says: "wrote nothing"},
	"nul":         {script: `printf '"a\000"'`, state: "failed", says: "not one JSON value"},
	"nul-escaped": {script: `printf '"a\\u0000"'`, state: "done", result: `"a` + "\ufffd" + `"`, says: "NUL"},
}

func TestHostileResultsAreStoredOrSaid(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) { workHostile(t, p, hostiles) })
}

func TestHostileResultsWhereJSONIsDemanded(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) { workHostile(t, p, demanding, "--exec-json") })
}

// workHostile works one row for each of the cases, all in one batch if possible.
func workHostile(t *testing.T, p *place, cases map[string]hostile, flags ...string) {
	var input, script strings.Builder
	script.WriteString("case $WINDROW_ROW_KEY in\n")
	for name, c := range cases {
		fmt.Fprintf(&input, "{\"name\":%q}\n", name)
		fmt.Fprintf(&script, "%s) %s ;;\n", name, c.script)
	}
	script.WriteString("esac\n")
	p.write("rows.jsonl", input.String())
	p.write("handler.sh", script.String())
	p.ok("load", "--key", "name", "rows.jsonl")
	o := p.run(slices.Concat([]string{"work", "--until-empty", "--max-attempts", "1", "-j", "8", "--exec", "exec sh handler.sh"}, flags)...)
	o.wants(3) // some rows failed
	rows := p.table().rows("true")
	if len(rows) != len(cases) {
		t.Fatalf("%d rows, want %d", len(rows), len(cases))
	}
	for _, r := range rows {
		cases[*r.Key].check(t, r)
	}
}

func (h hostile) check(t *testing.T, r row) {
	t.Helper()
	state, said := "done", text(r.LastError)
	if r.Error != nil {
		state, said = "failed", *r.Error
	}
	if !r.IsProcessed || r.Attempts != 1 || r.Checkouts != 1 {
		t.Errorf("%s: processed %t after %d attempts, %d check-outs", *r.Key, r.IsProcessed, r.Attempts, r.Checkouts)
		return
	}
	if h.state != "" && state != h.state {
		t.Errorf("%s is %s (%s), want %s", *r.Key, state, clip(said), h.state)
		return
	}
	if !strings.Contains(said, h.says) {
		t.Errorf("%s: %q is missing in %q", *r.Key, h.says, clip(said))
	}
	if len(said) > 10_000 || strings.ContainsRune(said, 0) {
		t.Errorf("%s: what is said has %d bytes, or a NUL", *r.Key, len(said))
	}
	if h.result != "" && compact(text(r.Result)) != h.result {
		t.Errorf("%s: result %s, want %s", *r.Key, clip(text(r.Result)), clip(h.result))
	}
	if len(text(r.Result)) < h.size {
		t.Errorf("%s: the result has %d bytes, want %d", *r.Key, len(text(r.Result)), h.size)
	}
}

// compact is a JSON text without white space, its strings in one spelling.
func compact(text string) string {
	var value any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return text
	}
	out, err := json.Marshal(value)
	if err != nil {
		return text
	}
	return string(out)
}
