package jsonb_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/windrow-go/windrow/internal/jsonb"
)

func TestSafeReplacesAndSaysSo(t *testing.T) {
	for _, tt := range []struct{ name, raw, want, remarks string }{
		{"nothing to do", `{"a": "é\u00e9"}`, `{"a": "é\u00e9"}`, ``},
		{"NUL", `["\u0000a\u0000"]`, `["\ufffda\ufffd"]`, `2 NUL characters replaced by U+FFFD`},
		{"not a NUL", `["\\u0000\u0000\\"]`, `["\\u0000\ufffd\\"]`, `1 NUL character replaced by U+FFFD`},
		{"halves beside a pair", `"\ud83d\ud83d\ude00\ude00"`, `"\ufffd\ud83d\ude00\ufffd"`, `2 lone surrogates replaced by U+FFFD`},
		{"two second halves", `"\ude00\ude01"`, `"\ufffd\ufffd"`, `2 lone surrogates replaced by U+FFFD`},
		{"invalid bytes", "\"caf\xe9 \xff\xfe\"", `"caf` + "\ufffd \ufffd\ufffd" + `"`, `3 invalid UTF-8 bytes replaced by U+FFFD`},
		{"U+FFFD itself", "\"\ufffd\"", "\"\ufffd\"", ``},
		{"all at once", "{\"\\u0000\":\"\xe9\\udc00\"}", `{"\ufffd":"` + "\ufffd" + `\ufffd"}`,
			`1 NUL character replaced by U+FFFD, 1 lone surrogate replaced by U+FFFD, 1 invalid UTF-8 byte replaced by U+FFFD`},
	} {
		out, remarks, err := jsonb.Safe([]byte(tt.raw))
		if err != nil || string(out) != tt.want || remarks != tt.remarks {
			t.Errorf("%s: got %q, %q, %v", tt.name, out, remarks, err)
		}
	}
}

func TestSafeRefusesWhatItCannotMend(t *testing.T) {
	for _, tt := range []struct{ name, raw, want string }{
		{"NaN", "[\"\xff\",NaN]", `not JSON at byte 6: "NaN]" where a value is expected`},
		{"a number too large", `["\u0000",1e200000]`, `number 1e200000 at byte 11: more than 131072 digits before the decimal point: PostgreSQL's numeric can't hold it`},
		{"invalid bytes outside a string", "\xff", `not JSON at byte 1: "\xff" where a value is expected`},
		{"too deep", strings.Repeat("[", 20000), `too deep at byte 1001: more than 1000 arrays and objects inside one another`},
	} {
		out, _, err := jsonb.Safe([]byte(tt.raw))
		if out != nil || err == nil || err.Error() != tt.want {
			t.Errorf("%s: got %q, %v", tt.name, out, err)
		}
	}
}

func TestSafeRefusesWhatGrowsTooBig(t *testing.T) {
	raw := bytes.Repeat([]byte{0xff}, jsonb.MaxBytes/3+10)
	raw[0], raw[len(raw)-1] = '"', '"'
	if _, _, err := jsonb.Safe(raw); err == nil || !strings.HasPrefix(err.Error(), "too big: ") {
		t.Errorf("got %v", err)
	}
}

func TestSafeTextCutsTheMiddle(t *testing.T) {
	for _, tt := range []struct {
		name, s string
		max     int
		want    string
	}{
		{"short", "as it is", 100, "as it is"},
		{"NUL and invalid bytes", "a\x00b\xff\xfec", 100, "a\ufffdb\ufffdc"},
		{"long", strings.Repeat("a", 500) + strings.Repeat("z", 500), 60, "aaaaaaaaaaaaaaaaaa […964 bytes cut…] zzzzzzzzzzzzzzzzzz"},
		{"runes stay whole", strings.Repeat("é", 500), 60, "ééééééééé […964 bytes cut…] ééééééééé"},
		{"no room for the mark", "abcdefghij", 4, "abcd"},
		{"no room for a rune", "éé", 1, ""},
		{"no room at all", "abc", 0, ""},
		{"less than none", "abc", -1, ""},
	} {
		got := jsonb.SafeText(tt.s, tt.max)
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func FuzzSafeText(f *testing.F) {
	f.Add(strings.Repeat("é\x00", 40)+"\xff", 50)
	f.Fuzz(func(t *testing.T, s string, most int) {
		got := jsonb.SafeText(s, most)
		if !utf8.ValidString(got) || strings.Contains(got, "\x00") || len(got) > max(most, 0) {
			t.Fatalf("%q cut to %d: %q", s, most, got)
		}
	})
}

func TestAppendCompactKeepsTheText(t *testing.T) {
	raw := []byte(" { \"a b\\\" \\\\\" :\t[ 1.50 , \"x\\n \" ] ,\r\n \"a\" : -0 } \n")
	want := `{"a b\" \\":[1.50,"x\n "],"a":-0}`
	if got := jsonb.AppendCompact([]byte("> "), raw); string(got) != "> "+want {
		t.Errorf("got %q", got)
	}
	if got := jsonb.AppendCompact(raw[:0], raw); string(got) != want {
		t.Errorf("in place: got %q", got)
	}
}
