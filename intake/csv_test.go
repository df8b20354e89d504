package intake_test

import (
	"strings"
	"testing"

	"github.com/windrow-go/windrow/intake"
)

func TestCSVGivesObjectsOfStrings(t *testing.T) {
	for _, tt := range []struct {
		name, content string
		want          []string
	}{
		{"order and zeros are kept", "zip,a\n00501,1.0\n", []string{`2 {"zip":"00501","a":"1.0"}`}},
		{"empty is a value", "a,b\n,\n\"\",x\n", []string{`2 {"a":"","b":""}`, `3 {"a":"","b":"x"}`}},
		{"no end on the last line", "a\nx", []string{`2 {"a":"x"}`}},
		{"CRLF", "a,b\r\n1,2\r\n3,4\r\n", []string{`2 {"a":"1","b":"2"}`, `3 {"a":"3","b":"4"}`}},
		{"a byte order mark", "\ufeffa\nx\n", []string{`2 {"a":"x"}`}},
		{"a mark before a quoted name", "\ufeff\"a\"\nx\n", []string{`2 {"a":"x"}`}},
		{"quoted commas, quotes and lines", "a,b\n\"x, \"\"y\"\"\",\"1\n2\"\nz,3\n", []string{`2 {"a":"x, \"y\"","b":"1\n2"}`, `4 {"a":"z","b":"3"}`}},
		{"blank lines are no records", "a,b\n\n1,2\n\n\n3,4\n\n", []string{`3 {"a":"1","b":"2"}`, `6 {"a":"3","b":"4"}`}},
		{"spaces stay", "a, b\n 1 , 2\n", []string{`2 {"a":" 1 "," b":" 2"}`}},
		{"odd names", "\"a\"\"b\",é\\\n1,2\n", []string{`2 {"a\"b":"1","é\\":"2"}`}},
		{"control characters", "a\n\"\t\x01\x7f\"\n", []string{`2 {"a":"\t\u0001` + "\x7f" + `"}`}},
		{"a header alone", "a,b\n", nil},
		{"a single column", "a\nx\ny\n", []string{`2 {"a":"x"}`, `3 {"a":"y"}`}},
	} {
		read(t, "in.csv", tt.content, intake.Options{}).want(t, tt.name, tt.want...)
	}
}

func TestCSVGoesOnAfterABadRecord(t *testing.T) {
	for _, tt := range []struct {
		name, content string
		want          []string
	}{
		{"too few fields", "a,b\n1\n2,3\n", []string{`! 2 1 field, the header has 2`, `3 {"a":"2","b":"3"}`}},
		{"too many fields", "a\n1,2,3\n4\n", []string{`! 2 3 fields, the header has 1`, `3 {"a":"4"}`}},
		{"a quote inside a bare field", "a,b\n5\" pipe,x\n2,3\n", []string{
			`! 2:2 a quote in a field that doesn't begin with one: the whole field must be quoted, and a quote in it doubled ("")`,
			`3 {"a":"2","b":"3"}`}},
		{"text behind a closing quote", "a,b\n\"5\" pipe,x\n2,3\n", []string{
			`! 2:3 text after the closing quote of a field: a quote in a quoted field must be doubled ("")`,
			`3 {"a":"2","b":"3"}`}},
		{"an open quote swallows up to the next one", "a,b\n\"1,x\n2,y\n\"3\",z\n4,w\n", []string{
			`! 2 text after the closing quote of a field: a quote in a quoted field must be doubled ("") (the fault is on line 4; the lines up to it belong to this bad record)`,
			`5 {"a":"4","b":"w"}`}},
		{"Latin-1", "a,b\n1,caf\xe9\n2,x\n", []string{
			`! 2:3 field "b" is not valid UTF-8: if the file is in Latin-1, iconv -f LATIN1 -t UTF-8 makes it so`,
			`3 {"a":"2","b":"x"}`}},
		{"NUL", "a,b\n1,x\x00y\n2,x\n", []string{
			`! 2:3 field "b" holds a NUL character, which PostgreSQL's jsonb can't hold`,
			`3 {"a":"2","b":"x"}`}},
	} {
		read(t, "in.csv", tt.content, intake.Options{}).want(t, tt.name, tt.want...)
	}
}

func TestCSVEndsWhereNothingMoreCanBeRead(t *testing.T) {
	for _, tt := range []struct{ name, content, want string }{
		{"empty", "", `! 1 the file is empty: its first line must name the columns`},
		{"blank lines only", "\n\n", `! 1 the file is empty: its first line must name the columns`},
		{"a name twice", "a,b,a\n1,2,3\n", `! 1 header: columns 1 and 3 have the same name "a": rename one`},
		{"no name", "a,,b\n1,2,3\n", `! 1 header: column 2 of 3 has no name: each column needs one`},
		{"Latin-1 in the header", "caf\xe9\n1\n", `! 1 header: the name of column 1 is not valid UTF-8: if the file is in Latin-1, iconv -f LATIN1 -t UTF-8 makes it so`},
		{"NUL in the header", "a,b\x00\n1,2\n", `! 1 header: the name of column 2 holds a NUL character`},
		{"old line ends", "a,b\r1,2\r3,4\r", `! 1 header: its lines end with CR alone: tr '\r' '\n' makes LF of them`},
		{"a bad quote in the header", "a\",b\n1,2\n", `! 1:2 header: a quote in a field that doesn't begin with one: the whole field must be quoted, and a quote in it doubled ("")`},
		{"another delimiter", "a;b;c\n1;2;3\n", `! 1 header: there is one column, and ";" in its name: if that is the delimiter, say so by --delimiter ";" (if not, --delimiter ',')`},
		{"UTF-16 with a mark", "\xff\xfea\x00,\x00b\x00\n\x00", `! 1 the file is in UTF-16: iconv -f UTF-16 -t UTF-8 makes UTF-8 of it`},
		{"UTF-16, big end first", "\xfe\xff\x00a\x00\n", `! 1 the file is in UTF-16: iconv -f UTF-16 -t UTF-8 makes UTF-8 of it`},
		{"UTF-16 without a mark", "a\x00,\x00b\x00\n\x00", `! 1 the file is in UTF-16: iconv -f UTF-16 -t UTF-8 makes UTF-8 of it`},
	} {
		g := read(t, "in.csv", tt.content, intake.Options{})
		g.want(t, tt.name, tt.want)
		if len(g.bad) != 1 || !g.bad[0].Fatal {
			t.Errorf("%s: not fatal: %+v", tt.name, g.bad)
		}
	}
}

func TestCSVQuoteThatIsNeverClosedIsFatal(t *testing.T) {
	g := read(t, "in.csv", "a,b\n1,2\n\"3,4\n5,6\n7,8\n", intake.Options{})
	g.want(t, "open quote", `2 {"a":"1","b":"2"}`,
		`! 3 a quote opened in this record is never closed, so that the rest of the file is read as one field`)
	if !g.bad[0].Fatal || string(g.bad[0].Raw) != "\"3,4\n5,6\n7,8\n" {
		t.Errorf("got %+v, raw %q", g.bad[0], g.bad[0].Raw)
	}
}

func TestCSVRecordTooLongIsFatalAndShown(t *testing.T) {
	g := read(t, "in.csv", "a,b\n1,2\n\"3,"+strings.Repeat(strings.Repeat("4,5", 1000)+"\n", 23_000), intake.Options{})
	g.want(t, "long", `2 {"a":"1","b":"2"}`,
		`! 3 the record doesn't end within 67108864 bytes: is a quote on its first line never closed?`)
	if len(g.bad) != 1 || !g.bad[0].Fatal || len(g.bad[0].Raw) != 4096 || !strings.HasPrefix(string(g.bad[0].Raw), `"3,4,5`) {
		t.Error("not fatal, or not shown")
	}
}

func TestCSVShowsTheBadRecordAsItStands(t *testing.T) {
	filler := strings.Repeat("1,2\n", 50_000) // beyond every buffer
	g := read(t, "in.csv", "a,b\n"+filler+"x,\"y\"\"\nz\",3\n5,6\n", intake.Options{})
	if len(g.bad) != 1 || string(g.bad[0].Raw) != "x,\"y\"\"\nz\",3\n" || g.bad[0].Line != 50_002 {
		t.Errorf("got %+v", g.bad)
	}
	if len(g.rows) != 50_002 || g.rows[50_001] != `50004 {"a":"5","b":"6"}` {
		t.Errorf("%d rows, the last %s", len(g.rows), g.rows[len(g.rows)-1])
	}
}

func TestCSVDelimiters(t *testing.T) {
	read(t, "in.tsv", "a,x\tb\n1,2\t3\n", intake.Options{}).want(t, "tab by name", `2 {"a,x":"1,2","b":"3"}`)
	read(t, "in.TSV.GZ", "a\tb\n1\t3\n", intake.Options{}).want(t, "tab by inner name", `2 {"a":"1","b":"3"}`)
	read(t, "in.csv", "a;b\n1;2\n", intake.Options{Delimiter: ';'}).want(t, "semicolon", `2 {"a":"1","b":"2"}`)
	read(t, "in.csv", "a;b\n1;2\n", intake.Options{Delimiter: ','}).want(t, "comma after all", `2 {"a;b":"1;2"}`)
	for _, d := range []rune{'"', '\n', '\r', 0xfffd, 0xd800} {
		if _, err := intake.Open([]string{"-"}, strings.NewReader(""), intake.Options{Delimiter: d}); err == nil {
			t.Errorf("delimiter %q was taken", d)
		}
	}
}

func TestCSVSampleFile(t *testing.T) {
	readFiles(t, intake.Options{}, "testdata/airports.csv").want(t, "airports",
		`2 {"iata":"00M","name":"Thigpen","city":"Bay Springs","state":"MS","country":"USA","latitude":"31.95376472","longitude":"-89.23450472"}`,
		`3 {"iata":"00R","name":"Livingston Municipal","city":"Livingston","state":"TX","country":"USA","latitude":"30.68586111","longitude":"-95.01792778"}`,
		`4 {"iata":"00V","name":"Meadow Lake","city":"Colorado Springs","state":"CO","country":"USA","latitude":"38.94574889","longitude":"-104.5698933"}`)
}
