package intake_test

import (
	"strings"
	"testing"

	"github.com/windrow-go/windrow/intake"
)

func TestJSONLGivesTheValueOfEachLine(t *testing.T) {
	for _, tt := range []struct {
		name, content string
		want          []string
	}{
		{"numbers keep their digits", "{\"n\": 9007199254740993.10, \"e\": 1E400}\n", []string{`1 {"n":9007199254740993.10,"e":1E400}`}},
		{"any value", "1\n\"x\"\nnull\n[1, 2]\n", []string{`1 1`, `2 "x"`, `3 null`, `4 [1,2]`}},
		{"no end on the last line", "{\"a\":1}\n{\"a\":2}", []string{`1 {"a":1}`, `2 {"a":2}`}},
		{"CRLF, blank lines, a mark", "\ufeff{\"a\":1}\r\n\r\n  \n{\"a\":2}\r\n", []string{`1 {"a":1}`, `4 {"a":2}`}},
		{"text stays as it is written", "{\"a\": \"\\u00e9 <&> \\/\"}\n", []string{`1 {"a":"\u00e9 <&> \/"}`}},
		{"bad lines between", "{\"a\":1}\n{\"a\":}\n{\"a\":\"\\u0000\"}\n{\"a\":1e200000}\n{\"a\":2} x\n{\"a\":3}\n", []string{
			`1 {"a":1}`,
			`! 2:6 not JSON: "}" where a value is expected`,
			`! 3:7 \u0000: PostgreSQL's jsonb can't hold the NUL character`,
			`! 4:6 number 1e200000: more than 131072 digits before the decimal point: PostgreSQL's numeric can't hold it`,
			`! 5:9 not JSON: there is more after the value: "x"`,
			`6 {"a":3}`}},
		{"a value on several lines", "{\n\"a\":1\n}\n", []string{
			`! 1:2 not JSON: it ends in the middle of a value; a value must stand on one line: jq -c . FILE puts it so`,
			`! 2:4 not JSON: there is more after the value: ":1"`,
			`! 3:1 not JSON: "}" where a value is expected`}},
		{"Latin-1", "\"caf\xe9\"\n", []string{`! 1:5 byte 0xe9: the text is not valid UTF-8`}},
		{"nothing", "", nil},
	} {
		read(t, "in.jsonl", tt.content, intake.Options{}).want(t, tt.name, tt.want...)
	}
}

func TestJSONGivesTheElementsOfAnArray(t *testing.T) {
	for _, tt := range []struct {
		name, content string
		want          []string
	}{
		{"on several lines", "[\n  {\"a\": 1,\n   \"b\": [ {} ]},\n\n  {\"a\": 2}\n]\n", []string{`2 {"a":1,"b":[{}]}`, `5 {"a":2}`}},
		{"on one line", `[{"a":1},{"a":2}]`, []string{`1 {"a":1}`, `1 {"a":2}`}},
		{"any value", `[1, -2.50, "x,]", true, null, [], {}]`, []string{`1 1`, `1 -2.50`, `1 "x,]"`, `1 true`, `1 null`, `1 []`, `1 {}`}},
		{"brackets and quotes in strings", `[{"a":"]}\"[{\\"},"\\",2]`, []string{`1 {"a":"]}\"[{\\"}`, `1 "\\"`, `1 2`}},
		{"empty", "[]", nil},
		{"empty, spread out", "\ufeff [\n]\n ", nil},
		{"a bad element between", "[1,\n{\"a\":NaN},\n\"\\u0000\",\nnope,\n2]", []string{
			`1 1`,
			`! 2 not JSON at byte 6: "NaN}" where a value is expected`,
			`! 3 \u0000 at byte 2: PostgreSQL's jsonb can't hold the NUL character`,
			`! 4 not JSON at byte 1: "nope" where a value is expected`,
			`5 2`}},
		{"mismatched brackets in an element", `[{"a":[1}},2]`, []string{
			`! 1 not JSON at byte 8: "}}" where "," or "]" is expected`, `1 2`}},
		{"cut off between elements", "[1,\n2", []string{`1 1`, `2 2`, `! 2 the file ends before the array does: is it complete?`}},
		{"cut off after a comma", "[1,\n", []string{`1 1`, `! 2 the file ends where an element is expected: is it complete?`}},
		{"cut off in an element", "[1,\n{\"a\":\n", []string{`1 1`, `! 3 the file ends in the middle of the value that starts on line 2: is it complete?`}},
		{"no comma", `[1 2]`, []string{`1 1`, `! 1 '2' where "," or "]" is expected after an element`}},
		{"a comma too many", `[1,]`, []string{`1 1`, `! 1 "]" after a comma, where an element is expected`}},
		{"two commas", `[1,,2]`, []string{`1 1`, `! 1 not JSON: it is empty`}},
		{"the wrong bracket", `[1}`, []string{`1 1`, `! 1 '}' where "," or "]" is expected after an element`}},
		{"more behind it", "[1\n]\n{}", []string{`1 1`, `! 3 there is more after the array: '{'; for one array a line the format is jsonl`}},
	} {
		read(t, "in.json", tt.content, intake.Options{}).want(t, tt.name, tt.want...)
	}
}

func TestJSONTakesValuesInARow(t *testing.T) {
	for _, tt := range []struct {
		name, content string
		want          []string
	}{
		{"really JSON Lines", "{\"a\":1}\n{\"a\":x}\n{\"a\":2}\n", []string{`1 {"a":1}`, `! 2:6 not JSON: "x}" where a value is expected`, `3 {"a":2}`}},
		{"arrays on lines", "[1,2]\n[3]\n", []string{`1 [1,2]`, `2 [3]`}},
		{"objects on several lines", "{\n\"a\":1\n}\n{\n\"a\":2}{}", []string{`1 {"a":1}`, `4 {"a":2}`, `5 {}`}},
		{"a bad one first", "{\"a\":\n x}\n{\"a\":2}", []string{`! 1 not JSON at byte 8: "x}" where a value is expected`, `3 {"a":2}`}},
		{"numbers", "1\n 2 3", []string{`1 1`, `2 2`, `2 3`}},
		{"no JSON at all", "}{", []string{`! 1 not JSON: it is empty`}},
		{"nothing", " \n", nil},
	} {
		read(t, "in.json", tt.content, intake.Options{}).want(t, tt.name, tt.want...)
	}
}

func TestJSONRefusesOneObject(t *testing.T) {
	for _, tt := range []struct{ name, content, want string }{
		{"GeoJSON", "{\"type\": \"FeatureCollection\",\n \"features\": [{}]}\n",
			`the file is one JSON object, not an array of rows; if they stand in its field "features": jq -c '.["features"][]' 'it'\''s.json' | windrow run -`},
		{"no array in it", `{"a":1}`,
			`the file is one JSON object, not an array of rows; if they stand in its field "rows": jq -c '.["rows"][]' 'it'\''s.json' | windrow run -`},
	} {
		dir := t.TempDir()
		t.Chdir(dir)
		writeTo(t, "it's.json", tt.content)
		g := readFiles(t, intake.Options{}, "it's.json")
		if len(g.bad) != 1 || g.bad[0].Reason != tt.want || !g.bad[0].Fatal || g.bad[0].Line != 1 {
			t.Errorf("%s: got %v", tt.name, g.rows)
		}
	}
}

func TestTooLongRecordsAreBoundedAndPassedOver(t *testing.T) {
	long := strings.Repeat("x", 64<<20)
	for _, tt := range []struct{ name, file, content, reason string }{
		{"a line", "in.jsonl", "1\n" + long + "x\n2", `the line has 67108866 bytes, the most for one record is 67108864`},
		{"an element", "in.json", "[1,\n\"" + long + "\",\n2]", `the value has 67108866 bytes, the most for one record is 67108864`},
	} {
		g := read(t, tt.file, tt.content, intake.Options{})
		if len(g.rows) != 3 || len(g.bad) != 1 || g.bad[0].Reason != tt.reason || g.bad[0].Line != 2 || len(g.bad[0].Raw) != 4096 || g.err != nil {
			t.Errorf("%s: %d rows, %+v, %v", tt.name, len(g.rows), g.bad, g.err)
		}
	}
}

func TestLongRecordsAreWhole(t *testing.T) {
	long := strings.Repeat("x", 3<<20)
	read(t, "in.txt", long+"\r\nb\n", intake.Options{}).want(t, "line", `1 "`+long+`"`, `2 "b"`)
	read(t, "in.jsonl", `{"a":"`+long+`"}`, intake.Options{}).want(t, "JSON Lines", `1 {"a":"`+long+`"}`)
	read(t, "in.json", `[{"a":"`+long+`"},1]`, intake.Options{}).want(t, "JSON", `1 {"a":"`+long+`"}`, `1 1`)
	read(t, "in.csv", "a\n\""+long+"\n"+long+"\"\nb\n", intake.Options{}).want(t, "CSV", `2 {"a":"`+long+`\n`+long+`"}`, `4 {"a":"b"}`)
}
