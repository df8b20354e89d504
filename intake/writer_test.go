package intake_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/windrow-go/windrow/intake"
)

var errWrite = errors.New("disk full")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errWrite }

func key(s string) *string { return &s }

// written returns what a writer makes of the lines.
func written(t *testing.T, format intake.Format, opts intake.WriterOptions, lines ...intake.Line) string {
	t.Helper()
	opts.TempDir = t.TempDir()
	var b bytes.Buffer
	w, err := intake.NewWriter(&b, format, opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		if err := w.Write(l); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(opts.TempDir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	return b.String()
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func TestWriteJSONLines(t *testing.T) {
	for _, tt := range []struct {
		name string
		opts intake.WriterOptions
		line intake.Line
		want string
	}{
		{"done", intake.WriterOptions{}, intake.Line{ID: 1, State: "done", Result: raw(`{"n": 9007199254740993}`), Data: raw(`{}`)},
			`{"id":1,"state":"done","result":{"n":9007199254740993}}`},
		{"with a key", intake.WriterOptions{}, intake.Line{ID: 1, Key: key("a\"b"), State: "done", Result: raw(`null`)},
			`{"id":1,"key":"a\"b","state":"done","result":null}`},
		{"an empty key", intake.WriterOptions{}, intake.Line{ID: 1, Key: key(""), State: "done", Result: raw(`[]`)},
			`{"id":1,"key":"","state":"done","result":[]}`},
		{"failed", intake.WriterOptions{}, intake.Line{ID: 2, State: "failed", Result: raw(`1`), HasError: true, Error: "line\nbreak \xff"},
			`{"id":2,"state":"failed","error":"line\nbreak ` + "\ufffd" + `"}`},
		{"not yet done", intake.WriterOptions{}, intake.Line{ID: 3, State: "fresh"}, `{"id":3,"state":"fresh"}`},
		{"data asked for", intake.WriterOptions{Data: true}, intake.Line{ID: 4, State: "done", Result: raw("{\n\"a\" :\t1\n}"), Data: raw("[ 1,\n2 ]")},
			`{"id":4,"state":"done","result":{"a":1},"data":[1,2]}`},
		{"merged", intake.WriterOptions{Merge: true}, intake.Line{ID: 5, Key: key("k"), State: "done", Data: raw(`{"id":"x","a":1,"b":2}`), Result: raw(`{"c":3,"a":4,"state":5}`)},
			`{"windrow_id":5,"windrow_key":"k","windrow_state":"done","id":"x","a":4,"b":2,"c":3,"state":5}`},
		{"merged, failed", intake.WriterOptions{Merge: true}, intake.Line{ID: 6, State: "failed", HasError: true, Data: raw(`{"error":"mine"}`)},
			`{"windrow_id":6,"windrow_state":"failed","windrow_error":"","error":"mine"}`},
		{"merged, no objects", intake.WriterOptions{Merge: true, Data: true}, intake.Line{ID: 7, State: "done", Data: raw(`"line"`), Result: raw(`[1]`)},
			`{"windrow_id":7,"windrow_state":"done","data":"line","result":[1]}`},
		{"merged again", intake.WriterOptions{Merge: true}, intake.Line{ID: 8, State: "done", Data: raw(`{"windrow_id":1,"windrow_error":"old","a":1}`), Result: raw(`{"windrow_state":"x"}`)},
			`{"windrow_id":8,"windrow_state":"done","a":1}`},
		{"merged, a name twice and escaped", intake.WriterOptions{Merge: true}, intake.Line{ID: 9, State: "done", Data: raw(`{"a":1,"\u0061":2,"q\"":0}`), Result: raw(`{"q\u0022":3}`)},
			`{"windrow_id":9,"windrow_state":"done","a":2,"q\"":3}`},
	} {
		if got := written(t, intake.JSONL, tt.opts, tt.line); got != tt.want+"\n" {
			t.Errorf("%s: got\n%s", tt.name, got)
		}
	}
}

func TestMergeOfManyFieldsKeepsTheirPlaces(t *testing.T) {
	var data, result, want strings.Builder
	for i := range 200 {
		fmt.Fprintf(&data, `,"f%d":%d`, i, i)
		if i%2 == 0 {
			fmt.Fprintf(&result, `,"f%d":-%d`, i, i)
			fmt.Fprintf(&want, `,"f%d":-%d`, i, i)
		} else {
			fmt.Fprintf(&want, `,"f%d":%d`, i, i)
		}
	}
	line := intake.Line{ID: 1, State: "done", Data: raw("{" + data.String()[1:] + "}"), Result: raw("{" + result.String()[1:] + `,"new":1}`)}
	expected := `{"windrow_id":1,"windrow_state":"done"` + want.String() + `,"new":1}` + "\n"
	if got := written(t, intake.JSONL, intake.WriterOptions{Merge: true}, line, line); got != expected+expected {
		t.Errorf("got\n%.300s", got)
	}
}

func TestWriteCSV(t *testing.T) {
	for _, tt := range []struct {
		name  string
		opts  intake.WriterOptions
		lines []intake.Line
		want  string
	}{
		{"nothing", intake.WriterOptions{}, nil, "id,state\n"},
		{"columns come in order of first sight", intake.WriterOptions{}, []intake.Line{
			{ID: 1, State: "done", Result: raw(`{"b":1,"a":"x, \"y\""}`)},
			{ID: 2, State: "failed", HasError: true, Error: "two\nlines"},
			{ID: 3, Key: key("k"), State: "done", Result: raw(`{"c":[1, {"d":"e"}],"a":null,"b":true}`)},
		}, "id,key,state,error,b,a,c\n1,,done,,1,\"x, \"\"y\"\"\",\n2,,failed,\"two\nlines\",,,\n3,k,done,,true,,\"[1,{\"\"d\"\":\"\"e\"\"}]\"\n"},
		{"results that are no objects", intake.WriterOptions{}, []intake.Line{
			{ID: 1, State: "done", Result: raw(`"x"`)}, {ID: 2, State: "done", Result: raw(`[1]`)}, {ID: 3, State: "done", Result: raw(`null`)}, {ID: 4, State: "done", Result: raw(`1.50`)},
		}, "id,state,result\n1,done,x\n2,done,[1]\n3,done,\n4,done,1.50\n"},
		{"data comes last", intake.WriterOptions{Data: true}, []intake.Line{
			{ID: 1, State: "done", Data: raw(`{"a": 1}`)}, {ID: 2, State: "done", Result: raw(`{"r":2}`), Data: raw(`"x"`)},
		}, "id,state,r,data\n1,done,,\"{\"\"a\"\":1}\"\n2,done,2,x\n"},
		{"names like windrow's own", intake.WriterOptions{Data: true}, []intake.Line{
			{ID: 1, State: "done", Result: raw(`{"id":7,"data":8,"result":9}`), Data: raw(`1`)},
		}, "id,state,result.id,result.data,result.result,data\n1,done,7,8,9,1\n"},
		{"merged", intake.WriterOptions{Merge: true}, []intake.Line{
			{ID: 1, State: "done", Data: raw(`{"id":"a","data":"b"}`), Result: raw(`{"n":1}`)},
			{ID: 2, State: "failed", HasError: true, Error: "e", Data: raw(`{"id":"c"}`)},
		}, "windrow_id,windrow_state,windrow_error,id,data,n\n1,done,,a,b,1\n2,failed,e,c,,\n"},
	} {
		if got := written(t, intake.CSV, tt.opts, tt.lines...); got != tt.want {
			t.Errorf("%s: got\n%s", tt.name, got)
		}
	}
}

func TestWriteCSVHasRoomForSparseRows(t *testing.T) {
	var lines []intake.Line
	for i := range 2000 {
		lines = append(lines, intake.Line{ID: int64(i), State: "done", Result: raw(fmt.Sprintf(`{"c%d":"%s"}`, i, strings.Repeat("x", i%300)))})
	}
	records, err := csv.NewReader(strings.NewReader(written(t, intake.CSV, intake.WriterOptions{}, lines...))).ReadAll()
	if err != nil || len(records) != 2001 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	for i := range 2000 {
		if records[0][i+2] != fmt.Sprintf("c%d", i) || len(records[i+1][i+2]) != i%300 {
			t.Fatalf("row %d: %q holds %q", i, records[0][i+2], records[i+1][i+2])
		}
	}
}

func TestWriteCSVBoundsItsColumns(t *testing.T) {
	w, err := intake.NewWriter(&bytes.Buffer{}, intake.CSV, intake.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var result strings.Builder
	for i := range 10_001 {
		fmt.Fprintf(&result, `,"c%d":1`, i)
	}
	err = w.Write(intake.Line{ID: 1, State: "done", Result: raw("{" + result.String()[1:] + "}")})
	if err == nil || !strings.Contains(err.Error(), "more than 10000 columns") {
		t.Errorf("got %v", err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

func TestWriterPassesErrorsOn(t *testing.T) {
	for _, format := range []intake.Format{intake.JSONL, intake.CSV} {
		w, err := intake.NewWriter(fullDisk{}, format, intake.WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(intake.Line{ID: 1, State: "done"}); err != nil {
			t.Errorf("%s: %v before anything was written", format, err)
		}
		if err := w.Close(); !errors.Is(err, errWrite) {
			t.Errorf("%s: got %v", format, err)
		}
	}
	if _, err := intake.NewWriter(fullDisk{}, intake.Parquet, intake.WriterOptions{}); err == nil {
		t.Error("Parquet was taken")
	}
}
