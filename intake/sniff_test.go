package intake_test

import (
	"testing"

	"github.com/windrow-go/windrow/intake"
)

func TestLinesAreStrings(t *testing.T) {
	for _, tt := range []struct {
		name, content string
		want          []string
	}{
		{"file names", "./a b\n./c\\d\"e\n", []string{`1 "./a b"`, `2 "./c\\d\"e"`}},
		{"no end on the last line", "a\nb", []string{`1 "a"`, `2 "b"`}},
		{"CRLF, a mark, empty lines", "\ufeffa\r\n\r\n\nb\r\r\n", []string{`1 "a"`, `2 ""`, `3 ""`, `4 "b\r"`}},
		{"numbers keep their zeros", "00501\n00544\n", []string{`1 "00501"`, `2 "00544"`}},
		{"Latin-1", "a\ncaf\xe9\nb\n", []string{`1 "a"`, `! 2 not valid UTF-8: if the file is in Latin-1, iconv -f LATIN1 -t UTF-8 makes it so`, `3 "b"`}},
		{"NUL", "a\x00b\nc\n", []string{`! 1 it holds a NUL character: PostgreSQL's jsonb can't (to end lines by NUL is not supported)`, `2 "c"`}},
		{"nothing", "", nil},
	} {
		readStdin(t, tt.content, intake.Options{}).want(t, tt.name, tt.want...)
		read(t, "in.txt", tt.content, intake.Options{}).want(t, tt.name+" (.txt)", tt.want...)
	}
}

func TestContentTellsTheFormatWhereTheNameDoesNot(t *testing.T) {
	for _, tt := range []struct {
		name, content string
		want          []string
	}{
		{"JSON Lines", "{\"a\":1}\n{\"a\":2}\n", []string{`1 {"a":1}`, `2 {"a":2}`}},
		{"one JSON line", "{\"a\":1}\n", []string{`1 {"a":1}`}},
		{"JSON strings", "\"a\"\n\"b\"\n", []string{`1 "a"`, `2 "b"`}},
		{"arrays on lines", "[1]\n[2]\n", []string{`1 [1]`, `2 [2]`}},
		{"an array", "[1,2]\n", []string{`1 1`, `1 2`}},
		{"an array on lines", "\n[\n1,\n2\n]", []string{`3 1`, `4 2`}},
		{"an array of objects, one bad", "[{\"a\":1},\n{\"a\":NaN}]", []string{`1 {"a":1}`, `! 2 not JSON at byte 6: "NaN}" where a value is expected`}},
		{"objects on several lines", "{\n \"a\": 1\n}\n{\n \"a\": 2\n}\n", []string{`1 {"a":1}`, `4 {"a":2}`}},
		{"JSON Lines, the first bad", "{\"a\":NaN}\n{\"a\":2}\n", []string{`! 1 not JSON at byte 6: "NaN}" where a value is expected`, `2 {"a":2}`}},
		{"a log", "[2024-01-01 10:00] x\n[2024-01-01 10:01] y\n", []string{`1 "[2024-01-01 10:00] x"`, `2 "[2024-01-01 10:01] y"`}},
		{"a log with words", "[error] x\n", []string{`1 "[error] x"`}},
		{"a template", "{name}\n", []string{`1 "{name}"`}},
		{"quoted words", "\"a\" b\n", []string{`1 "\"a\" b"`}},
		{"numbers", "1\n2\n", []string{`1 "1"`, `2 "2"`}},
		{"words of JSON", "true\nnull\n", []string{`1 "true"`, `2 "null"`}},
		{"white space", "   \n\t\n", []string{`1 "   "`, `2 "\t"`}},
	} {
		readStdin(t, tt.content, intake.Options{}).want(t, tt.name, tt.want...)
		read(t, "noname", tt.content, intake.Options{}).want(t, tt.name+" (file)", tt.want...)
	}
}

func TestFormatAskedForWinsOverTheName(t *testing.T) {
	read(t, "in.json", "[1]\n", intake.Options{Format: intake.Lines}).want(t, "lines", `1 "[1]"`)
	read(t, "in.txt", "a\n1\n", intake.Options{Format: intake.CSV}).want(t, "csv", `2 {"a":"1"}`)
	readStdin(t, "1\n", intake.Options{Format: intake.JSONL}).want(t, "jsonl", `1 1`)
	readStdin(t, "{\"a\":1}\n", intake.Options{Format: intake.JSONL}).want(t, "one object", `1 {"a":1}`)
}

func TestParseFormat(t *testing.T) {
	for _, tt := range []struct {
		name string
		want intake.Format
		ok   bool
	}{
		{"", intake.Auto, true}, {"csv", intake.CSV, true}, {"JSONL", intake.JSONL, true}, {"ndjson", intake.JSONL, true},
		{"parquet", intake.Parquet, true}, {"tsv", intake.Auto, false}, {"xml", intake.Auto, false},
	} {
		got, err := intake.ParseFormat(tt.name)
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("%q: got %q, %v", tt.name, got, err)
		}
	}
}

func TestFormatOf(t *testing.T) {
	for name, want := range map[string]intake.Format{
		"a.csv": intake.CSV, "a.TSV.gz": intake.CSV, "x/a.ndjson.zst": intake.JSONL, "a.jsonl": intake.JSONL, "a.geojson": intake.JSON,
		"a.json.gz": intake.JSON, "a.parquet": intake.Parquet, "a.txt": intake.Lines, "csv": intake.Auto, "a.gz": intake.Auto, "a.xml": intake.Auto, "-": intake.Auto,
	} {
		if got := intake.FormatOf(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
