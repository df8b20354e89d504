package errorgroups_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/windrow-go/windrow/internal/errorgroups"
)

// messages are errors as programs write them, and what is left of them.
var messages = map[string]string{
	"":                              "",
	"row 17: timed out after 1m30s": "row <n>: timed out after <n>",
	"user 42 not found":             "user <n> not found",
	"user42 not found, nor user_43": "user<n> not found, nor user_<n>",
	"commit 4f1c09aa not found":     "commit <hex> not found",
	"commit abcdefab not found":     "commit <hex> not found",
	"object 6f1ed002ab5595859014ebf0951522d9 is gone":                      "object <hex> is gone",
	"invalid memory address 0xC000123AB or nil":                            "invalid memory address <hex> or nil",
	"order 0190163d-8694-739b-aea5-966c26f8ad91: paid":                     "order <uuid>: paid",
	"charge ch_1J4kL2eZvKYlo2C declined":                                   "charge ch_<id> declined",
	"at 2026-11-03T10:22:01.5Z: late":                                      "at <time>: late",
	"at 2026-11-03 10:22:01,123+02:00: late":                               "at <time>: late",
	"2026/11/03 10:22:01 late":                                             "<time> late",
	"born 1999-12-31, late":                                                "born <time>, late",
	"at 10:22:01 late":                                                     "at <time> late",
	"main.go:12:34: bad":                                                   "main.go:<n>:<n>: bad",
	"dial tcp 10.0.0.7:5432: connect: connection refused":                  "dial tcp <ip>:<n>: connect: connection refused",
	"dial tcp [::1]:5432: refused":                                         "dial tcp [<ip>]:<n>: refused",
	"no route to 2001:db8::7: host down":                                   "no route to <ip>: host down",
	"card 00:1b:63:84:45:e6 is off":                                        "card <hex> is off",
	"std::bad_alloc in abc::def":                                           "std::bad_alloc in abc::def",
	"no mailbox alice.b+c@mail.example.org.":                               "no mailbox <email>.",
	"read 1,234.5 of 12MB (-3.2e-7), 40%":                                  "read <n> of <n>MB (<n>), <n>%",
	"the 1st of [1,2,3]":                                                   "the <n>st of [<n>]",
	"12.5abcde":                                                            "<n>.<id>",
	"two\n\n  lines\tand\x00 a bell\a\n":                                   "two lines and a bell",
	"\x1b[1;31mred\x1b[0m\u202e 7":                                         "red <n>",
	"Zürich: 3 Fehler, 東京 5":                                               "Zürich: <n> Fehler, 東京 <n>",
	"not UTF-8: \xff\xfe":                                                  "not UTF-<n>: \ufffd\ufffd",
	"Traceback: line 3, in f\nValueError: invalid literal for int(): 'x1'": "Traceback: line <n>, in f ValueError: invalid literal for int(): '<id>'",
	"its worker was lost 6 times while processing this row":                "its worker was lost <n> times while processing this row",
	"jq: cannot add: object ({\"a\":1}) and number (2)":                    "jq: cannot add: object ({\"a\":<n>}) and number (<n>)",
	"KeyError: 17":                                                         "KeyError: <n>",
	"Error: 17 is odd":                                                     "Error: <n> is odd",
	"17 is odd":                                                            "<n> is odd",
	"unicode 17 and barcode 18":                                            "unicode <n> and barcode <n>",
	"status 1234 of order 5, code 4.5":                                     "status <n> of order <n>, code <n>",
	"exit status 1: no such file":                                          "exit status 1: no such file",
	"exit status 65: row 9":                                                "exit status 65: row <n>",
	"exited with code -9":                                                  "exited with code -9",
	"404 Not Found: no page 17":                                            "404 Not Found: no page <n>",
	"GET /users/17: HTTP/1.1 503 Service Unavailable":                      "GET /users/<n>: HTTP/1.1 503 Service Unavailable",
	"HTTP Error 404: Not Found":                                            "HTTP Error 404: Not Found",
	"Request failed with status code 404":                                  "Request failed with status code 404",
	"curl: (22) The requested URL returned error: 404":                     "curl: (<n>) The requested URL returned error: 404",
	"{\"statusCode\": 500, \"exit_code\":3, \"id\":77}":                    "{\"statusCode\": 500, \"exit_code\":3, \"id\":<n>}",
	"[Errno 111] Connection refused":                                       "[Errno 111] Connection refused",
	"No such file (os error 2)":                                            "No such file (os error 2)",
	"ERROR: duplicate key (SQLSTATE 23505), Key (id)=(77)":                 "ERROR: duplicate key (SQLSTATE 23505), Key (id)=(<n>)",
	"relation is missing (SQLSTATE 42P01)":                                 "relation is missing (SQLSTATE 42P01)",
	"killed by SIGKILL (killed), signal 9":                                 "killed by SIGKILL (killed), signal 9",
	"the response of api.example:8080 is larger than 1048576 bytes":        "the response of api.example:<n> is larger than <n> bytes",
	"panic: runtime error: index out of range [5] with length 3\n\ngoroutine 7 [run]": "panic: runtime error: index out of range [<n>] with length <n> goroutine <n> [run]",
}

func TestAMessageKeepsTheWordsAndDropsTheRow(t *testing.T) {
	for text, want := range messages {
		if got := errorgroups.Message(text); got != want {
			t.Errorf("%q:\n got %q\nwant %q", text, got, want)
		}
	}
}

func TestErrorsOfDifferentRowsHaveOneMessage(t *testing.T) {
	for _, pattern := range []string{
		"row %d: no customer %08x at 192.0.2.%d:%d",
		"id=%d, hash %016x, %d%% of %dms",
		"file_%d.csv: line %[2]d: %032[2]x is not %[3]d.%[4]d",
	} {
		first := errorgroups.Message(fmt.Sprintf(pattern, 1, 0xfedcba98, 1, 1))
		for i := 2; i < 250; i++ {
			text := fmt.Sprintf(pattern, i*i*i, i*2654435761%(1<<32)|0xa0000000, i, i*37)
			if got := errorgroups.Message(text); got != first {
				t.Fatalf("%q has the message %q, others %q", text, got, first)
			}
		}
	}
}

func TestALongMessageKeepsBeginningAndEnd(t *testing.T) {
	lines := strings.Repeat("  File \"main.py\", line 17, in f\n", 200)
	got := errorgroups.Message("Traceback, row 9:\n" + lines + "ValueError: bad row 9")
	if !strings.HasPrefix(got, "Traceback, row <n>: ") || !strings.HasSuffix(got, " ValueError: bad row <n>") || !strings.Contains(got, " … ") {
		t.Errorf("got %q", got)
	}
	checkMessage(t, lines)
	checkMessage(t, strings.Repeat("x", 5000))
	checkMessage(t, strings.Repeat("é", 5000))
	checkMessage(t, strings.Repeat("status 404 ", 500))
}

// Nothing that a program may write takes more than time in proportion to its length.
func TestNoTextIsSlow(t *testing.T) {
	for _, piece := range []string{"1", "1,", "1h", "1.1h", "1:", "a:", "::", "a.", "1.", "a@", "1e", "-1", "12:34", "0x", "'", "\"a", "\\'", "\xff", "a-1", "\x1b["} {
		short, long := strings.Repeat(piece, 2<<10/len(piece)), strings.Repeat(piece, 128<<10/len(piece))
		began := time.Now()
		for range 64 {
			errorgroups.Message(short)
		}
		linear := time.Since(began)
		began = time.Now()
		errorgroups.Message(long)
		if took := time.Since(began); took > 20*linear+100*time.Millisecond {
			t.Errorf("128 KiB of %q took %v, 64 times 2 KiB %v", piece, took, linear)
		}
	}
}

// checkMessage holds what is true of every message.
func checkMessage(t interface{ Errorf(string, ...any) }, text string) {
	got := errorgroups.Message(text)
	switch {
	case len(got) > 1024:
		t.Errorf("%q: the message has %d bytes", text, len(got))
	case !utf8.ValidString(got):
		t.Errorf("%q: the message %q is not UTF-8", text, got)
	case strings.IndexFunc(got, func(r rune) bool { return !unicode.IsGraphic(r) || r != ' ' && unicode.IsSpace(r) }) >= 0:
		t.Errorf("%q: the message %q is not one plain line", text, got)
	case errorgroups.Message(got) != got:
		t.Errorf("%q:\nits message is         %q\nwhose message again is %q", text, got, errorgroups.Message(got))
	}
}

// pieces are what texts are made of that a message could make something else of.
var pieces = []string{
	" ", "\n", "\x00", "\x1b[1m", "\x1b[", ":", "::", "-", "+", ".", ",", "/", "(", "[", "#", "=", "\"", "'", "_", "@", "<", ">", "%", "\\", "…", "é", "\xff",
	"0", "7", "17", "404", "2026", "12345", "1.5", "1e5", "0x", "0x1f", "12:34", "12:34:56", "2026-11-03", "T", "Z", "+01:00",
	"ms", "s", "h", "1h", "30s", "µs", "MB", "e", "a", "abc", "dead", "beef", "cafebabe", "user", "User", "XY", "zz9zz",
	"code", "statusCode", "status", "exit", "signal", "errno", "error", "returned", "HTTP", "HTTP/1.1", "HTTP/2", "SQLSTATE", "42P01",
	"10.0.0.1", "::1", "2001:db8::1", "00:1b:63:84:45:e6", "6f1ed002-ab55-9585-9014-ebf0951522d9", "a@b", "host.example",
	"<n>", "<hex>", "n", "hex", strings.Repeat("x", 500), strings.Repeat("word ", 150), strings.Repeat("é", 300), strings.Repeat("1 ", 150),
}

func TestTheMessageOfAMessageIsItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkMessage(t, strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 40).Draw(t, "pieces"), ""))
	})
}

func FuzzMessage(f *testing.F) {
	for text := range messages {
		f.Add(text)
		f.Add(strings.Repeat(text+" ", 40))
	}
	for _, text := range []string{
		"404::12345", "0,0a@b", "code ::112:34::", "code 1:a:b:c:d:e:f:a:12345", "code ::1.6f1ed002-ab55-9585-9014-ebf0951522d9",
		"cafe\x1b[mbabe", "code\x1b[0m 404",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { checkMessage(t, text) })
}
