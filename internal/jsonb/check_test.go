package jsonb_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/windrow-go/windrow/internal/jsonb"
)

func TestCheckAcceptsWhatJsonbHolds(t *testing.T) {
	for name, raw := range map[string]string{
		"null":                            `null`,
		"white space around":              " \t\r\n{ \"a\" : [ 1 , true , false ] } \n",
		"empty containers":                `[{},[],""]`,
		"every short escape":              `"\"\\\/\b\f\n\r\t"`,
		"a surrogate pair":                `"\ud83d\uDE00"`,
		"U+FFFF by escape":                `"\uffff"`,
		"an escaped backslash before u":   `"\\u0000"`,
		"DEL and C1 controls":             "\"\x7f\u0085\"",
		"four-byte characters":            `"😀é"`,
		"more digits than a float":        `9007199254740993.00000000000000000001`,
		"beyond a float":                  `1e400`,
		"minus zero":                      `-0`,
		"the largest power":               `1e131071`,
		"a fraction before a large power": `0.01e131073`,
		"131072 digits":                   strings.Repeat("9", 131072),
		"the smallest power":              `1e-16383`,
		"16383 digits after the point":    "0." + strings.Repeat("0", 16382) + "1",
		"zero with a large power":         `0e200000`,
		"zero with the largest power":     `0.0E+1073741822`,
		"the deepest nesting":             strings.Repeat("[", 1000) + strings.Repeat("]", 1000),
		"as deep, side by side":           `[` + strings.Repeat(`{"a":[]},`, 5000) + `0]`,
		"duplicate names":                 `{"a":1,"a":2}`,
	} {
		if err := jsonb.Check([]byte(raw)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckRefusesWhatJsonbCannotHold(t *testing.T) {
	for _, tt := range []struct{ name, raw, want string }{
		{"nothing", ``, `not JSON: it is empty`},
		{"white space only", " \n", `not JSON: it is empty`},
		{"NaN", `{"a":NaN}`, `not JSON at byte 6: "NaN}" where a value is expected`},
		{"a word cut short", `tru`, `not JSON at byte 1: "tru" where a value is expected`},
		{"two values", `1 2`, `not JSON at byte 3: there is more after the value: "2"`},
		{"an open array", `[1,`, `not JSON at byte 4: it ends in the middle of a value`},
		{"an open object", `{`, `not JSON at byte 2: it ends in the middle of a value`},
		{"an open name", `{"a"`, `not JSON at byte 5: it ends in the middle of a value`},
		{"an open string", `"a`, `not JSON at byte 3: it ends in the middle of a value`},
		{"an open escape", `"\`, `not JSON at byte 3: it ends in the middle of a value`},
		{"a minus alone", `-`, `not JSON at byte 2: it ends in the middle of a value`},
		{"a comma too many", `[1,]`, `not JSON at byte 4: "]" where a value is expected`},
		{"no comma", `[1 2]`, `not JSON at byte 4: "2]" where "," or "]" is expected`},
		{"no colon", `{"a" 1}`, `not JSON at byte 6: "1}" where ":" is expected`},
		{"an unquoted name", `{a:1}`, `not JSON at byte 2: "a:1}" where a name in double quotes is expected`},
		{"a comma too many in an object", `{"a":1,}`, `not JSON at byte 8: "}" where a name in double quotes is expected`},
		{"mismatched brackets", `[1}`, `not JSON at byte 3: "}" where "," or "]" is expected`},
		{"a leading zero", `01`, `not JSON at byte 1: a number with a leading zero`},
		{"a leading plus", `+1`, `not JSON at byte 1: "+1" where a value is expected`},
		{"a point alone", `1.`, `not JSON at byte 3: it ends in the middle of a value`},
		{"no digit before the point", `[.5]`, `not JSON at byte 2: ".5]" where a value is expected`},
		{"an exponent without digits", `[1e]`, `not JSON at byte 4: "]" where a digit is expected`},
		{"an unknown escape", `"a\x"`, `not JSON at byte 3: no such escape in a string: "\\x\""`},
		{"a short unicode escape", `"\u12"`, `not JSON at byte 2: four hexadecimal digits are expected: "\\u12\""`},
		{"a control character", "\"a\nb\"", `not JSON at byte 3: the control character U+000A stands unescaped in a string`},
		{"a raw NUL", "\"\x00\"", `not JSON at byte 2: the control character U+0000 stands unescaped in a string`},
		{"NUL", `{"a":"0123456\u0000"}`, `\u0000 at byte 14: PostgreSQL's jsonb can't hold the NUL character`},
		{"NUL in a name", `{"\u0000":1}`, `\u0000 at byte 3: PostgreSQL's jsonb can't hold the NUL character`},
		{"a first half alone", `"\ud800"`, `\ud800 at byte 2: half of a surrogate pair, which is no character`},
		{"a second half alone", `"\uDE00"`, `\uDE00 at byte 2: half of a surrogate pair, which is no character`},
		{"two first halves", `"\ud83d\ud83d\ude00"`, `\ud83d at byte 2: half of a surrogate pair, which is no character`},
		{"two second halves", `"\ude00\ude01"`, `\ude00 at byte 2: half of a surrogate pair, which is no character`},
		{"a half before a letter", `"\ud83dA"`, `\ud83d at byte 2: half of a surrogate pair, which is no character`},
		{"Latin-1", "\"caf\xe9\"", `byte 0xe9 at byte 5: the text is not valid UTF-8`},
		{"a surrogate in UTF-8", "\"\xed\xa0\x80\"", `byte 0xed at byte 2: the text is not valid UTF-8`},
		{"an overlong slash", "\"\xc0\xaf\"", `byte 0xc0 at byte 2: the text is not valid UTF-8`},
		{"one digit too many", `[1e131072]`, `number 1e131072 at byte 2: more than 131072 digits before the decimal point: PostgreSQL's numeric can't hold it`},
		{"ten times the largest power", `10e131071`, `number 10e131071 at byte 1: more than 131072 digits before the decimal point: PostgreSQL's numeric can't hold it`},
		{"a fraction before a power", `-0.1e131073`, `number -0.1e131073 at byte 1: more than 131072 digits before the decimal point: PostgreSQL's numeric can't hold it`},
		{"too small", `1e-16384`, `number 1e-16384 at byte 1: more than 16383 digits after the decimal point: PostgreSQL's numeric can't hold it`},
		{"a trailing zero counts", `1.0e-16383`, `number 1.0e-16383 at byte 1: more than 16383 digits after the decimal point: PostgreSQL's numeric can't hold it`},
		{"even of zero", `0e-16384`, `number 0e-16384 at byte 1: more than 16383 digits after the decimal point: PostgreSQL's numeric can't hold it`},
		{"an exponent beyond int64", `1e99999999999999999999999`, `number 1e9999999999999999999999… at byte 1: an exponent of this size: PostgreSQL's numeric can't hold it`},
		{"an exponent beyond int64, of zero", `0e99999999999999`, `number 0e99999999999999 at byte 1: an exponent of this size: PostgreSQL's numeric can't hold it`},
		{"too deep", strings.Repeat(`{"a":`, 1001), `too deep at byte 5001: more than 1000 arrays and objects inside one another`},
	} {
		err := jsonb.Check([]byte(tt.raw))
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
		}
		var typed *jsonb.Error
		if !errors.As(err, &typed) {
			t.Errorf("%s: not an *Error: %T", tt.name, err)
		}
	}
}

func TestCheckBoundsTheDigitsOfLongNumbers(t *testing.T) {
	for _, tt := range []struct {
		name, raw string
		ok        bool
	}{
		{"131073 digits", "1" + strings.Repeat("0", 131072), false},
		{"16384 after the point", "1." + strings.Repeat("0", 16384), false},
		{"16383 after the point", "1." + strings.Repeat("0", 16383), true},
		{"a long fraction shifted left", "1." + strings.Repeat("3", 20000) + "e10000", true},
		{"zeros shifted into the integer part", "0." + strings.Repeat("0", 140000) + "1e140001", true},
		{"zeros not shifted far enough", "0." + strings.Repeat("0", 140000) + "1e123000", false},
	} {
		if err := jsonb.Check([]byte(tt.raw)); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestCheckBoundsSizeInEveryForm(t *testing.T) {
	list := func(item string, n int) []byte {
		return []byte("[" + strings.Repeat(item+",", n-1) + item + "]")
	}
	object := func(n int) []byte {
		return []byte("{" + strings.Repeat(`"":0,`, n-1) + `"":0}`)
	}
	for _, tt := range []struct {
		name, want string
		raw        []byte
	}{
		{"a byte more", "too big: 67108865 bytes, the most for one value is 67108864", make64M('1', '1')},
		{"exponents written out", "too big: with the exponents of its numbers written out it has more than 67108864 bytes", list("1e131071", 600)},
		{"fewer exponents", "", list("1e131071", 500)},
		{"tiny values by the million", "too big: more than the 256 MiB that PostgreSQL's jsonb can hold in binary form", list("[0]", 8_400_000)},
		{"elements", "too big at byte 1: an array of more than 16777216 elements", list("0", 1<<24+1)},
		{"members", "too big at byte 1: an object of more than 8388608 members", object(1<<23 + 1)},
	} {
		got := ""
		if err := jsonb.Check(tt.raw); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// make64M returns a text of as many bytes as one value may have, and extra ones.
func make64M(fill byte, extra ...byte) []byte {
	b := make([]byte, jsonb.MaxBytes, jsonb.MaxBytes+len(extra))
	for i := range b {
		b[i] = fill
	}
	return append(b, extra...)
}

func TestCheckDoesNotAllocate(t *testing.T) {
	raw := []byte(`{"a":[1,2.5e3,"x\u00e9é"],"b":{"c":null}}`)
	if n := testing.AllocsPerRun(100, func() { _ = jsonb.Check(raw) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzCheck holds the three promises that tie the functions together, and holds
// Check against the standard library.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,-2.5e+3,"x\u00e9\n",true,false,null]}`, `"\ud83d\ude00\ud800"`, "\"\xff\\u0000\"", `1e131072`, `[[[`, " 1 ", `"\\u0000\\"`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		err := jsonb.Check(raw)
		if err == nil && !json.Valid(raw) {
			t.Fatalf("accepted, but is not JSON: %q", raw)
		}
		out, remarks, safeErr := jsonb.Safe(raw)
		if err == nil && (safeErr != nil || remarks != "" || string(out) != string(raw)) {
			t.Fatalf("changed what was well: %q to %q, %q, %v", raw, out, remarks, safeErr)
		}
		if safeErr == nil && jsonb.Check(out) != nil {
			t.Fatalf("called safe: %q: %v", out, jsonb.Check(out))
		}
		if safeErr == nil && err != nil && remarks == "" {
			t.Fatalf("changed without a word: %q to %q", raw, out)
		}
		if err == nil {
			checkCompact(t, raw)
		}
	})
}

func checkCompact(t *testing.T, raw []byte) {
	t.Helper()
	out := jsonb.AppendCompact(nil, raw)
	if err := jsonb.Check(out); err != nil {
		t.Fatalf("compacting broke it: %q to %q: %v", raw, out, err)
	}
	if strings.ContainsAny(string(out), "\n\r\t") || len(out) > len(raw) {
		t.Fatalf("not compact: %q", out)
	}
}

func BenchmarkCheck(b *testing.B) {
	raw := []byte(`{"iata":"00M","name":"Thigpen ","city":"Bay Springs","state":"MS","country":"USA","latitude":31.95376472,"longitude":-89.23450472,"tags":["a","b\n"]}`)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if err := jsonb.Check(raw); err != nil {
			b.Fatal(err)
		}
	}
}
