package intake_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/windrow-go/windrow/intake"
)

func gzipped(t testing.TB, content string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func zstded(t testing.TB, content string) string {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(w.EncodeAll([]byte(content), nil))
}

func TestCompressionIsToldByContent(t *testing.T) {
	const csv = "a\nx\n"
	for name, content := range map[string]string{
		"in.csv.gz": gzipped(t, csv), "in.csv.zst": zstded(t, csv), "in.csv": gzipped(t, csv),
		"twice.csv.gz": gzipped(t, "a\n") + gzipped(t, "x\n"), "plain.csv.gz": csv,
	} {
		read(t, name, content, intake.Options{}).want(t, name, `2 {"a":"x"}`)
	}
	readStdin(t, zstded(t, "{\"a\":1}\n"), intake.Options{}).want(t, "standard input", `1 {"a":1}`)
}

func TestCompressedFileCutOffIsAnError(t *testing.T) {
	lines := strings.Repeat("{\"a\":12345}\n", 100_000)
	for name, content := range map[string]string{"in.jsonl.gz": gzipped(t, lines), "in.jsonl.zst": zstded(t, lines), "in.json.gz": gzipped(t, "["+strings.ReplaceAll(lines, "\n", ",\n"))} {
		for _, keep := range []int{len(content) - 3, len(content) / 2, 5} {
			g := read(t, name, content[:keep], intake.Options{})
			if !errors.Is(g.err, io.ErrUnexpectedEOF) || !strings.Contains(g.err.Error(), name+": the compressed data ends too early") {
				t.Errorf("%s, %d bytes: got %v and %d rows", name, keep, g.err, len(g.rows))
			}
		}
	}
	if g := read(t, "in.csv.gz", "", intake.Options{}); g.err == nil || !strings.Contains(g.err.Error(), "in.csv.gz: the file is empty") {
		t.Errorf("empty: got %v", g.err)
	}
}

func TestForeignPackingIsNamed(t *testing.T) {
	for content, want := range map[string]string{
		"BZh91AY&SY....": "bzip2 -dc", "\xfd7zXZ\x00....": "xz -dc", "PK\x03\x04....": "a zip archive",
	} {
		if g := read(t, "in.csv", content, intake.Options{}); g.err == nil || !strings.Contains(g.err.Error(), want) {
			t.Errorf("%q: got %v", content, g.err)
		}
	}
}

func TestFilesAreReadOneAfterAnother(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTo(t, "a.csv", "x\n1\n")
	writeTo(t, "b.jsonl", "{\"x\":}\n{\"x\":2}")
	s, err := intake.Open([]string{"a.csv", "-", "b.jsonl"}, strings.NewReader("line\n"), intake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var seen []string
	for {
		r, err := s.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			seen = append(seen, err.Error())
			continue
		}
		seen = append(seen, fmt.Sprintf("%s %d %s", r.File, r.Line, r.Data))
	}
	want := `a.csv 2 {"x":"1"}
standard input 1 "line"
b.jsonl, line 1, column 6: not JSON: "}" where a value is expected
b.jsonl 2 {"x":2}`
	if got := strings.Join(seen, "\n"); got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestOpenRefusesAtOnce(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.csv")
	writeTo(t, file, "a\n")
	for _, tt := range []struct {
		name  string
		files []string
		opts  intake.Options
		want  string
	}{
		{"no file", nil, intake.Options{}, "no input file is named"},
		{"a missing one behind others", []string{file, filepath.Join(dir, "b.csv")}, intake.Options{}, "no such file"},
		{"a folder", []string{dir}, intake.Options{}, "it is a folder"},
		{"standard input twice", []string{"-", file, "-"}, intake.Options{}, "named twice"},
		{"an unknown format", []string{file}, intake.Options{Format: "xml"}, "must be one of csv"},
	} {
		_, err := intake.Open(tt.files, strings.NewReader(""), tt.opts)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v", tt.name, err)
		}
	}
}

func TestReadErrorsAreFinalAndNameTheFile(t *testing.T) {
	broken := errors.New("broken")
	for _, format := range intake.Formats() {
		in := io.MultiReader(strings.NewReader("[\n1,\n"), iotest.ErrReader(broken))
		s, err := intake.Open([]string{"-"}, in, intake.Options{Format: format})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 { // a header and a record may come before
			if _, err = s.Next(); errors.Is(err, broken) {
				break
			}
		}
		if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "read standard input: ") {
			t.Errorf("%s: got %v", format, err)
		}
		if _, again := s.Next(); again != err {
			t.Errorf("%s: then %v", format, again)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestRecordsStayWhatTheyWere(t *testing.T) {
	var content strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&content, "{\"n\":%d,\"pad\":\"%s\"}\n", i, strings.Repeat("x", i%997))
	}
	s, err := intake.Open([]string{"-"}, strings.NewReader(content.String()), intake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var records []intake.Record
	for r, err := s.Next(); err != io.EOF; r, err = s.Next() {
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	for i, r := range records {
		if want := fmt.Sprintf(`{"n":%d,"pad":"%s"}`, i, strings.Repeat("x", i%997)); string(r.Data) != want {
			t.Fatalf("record %d became %.60s", i, r.Data)
		}
		_ = append(r.Data, "must not reach the next one"...)
	}
}

func TestProgressEndsAtTheSizeOfTheFiles(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.csv"), filepath.Join(dir, "b.jsonl.gz")
	writeTo(t, a, "a\nx\n")
	writeTo(t, b, gzipped(t, strings.Repeat("1\n", 1000)))
	info, err := os.Stat(b)
	if err != nil {
		t.Fatal(err)
	}
	s, err := intake.Open([]string{a, b}, nil, intake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if read, total := s.Progress(); read != 0 || total != 4+info.Size() {
		t.Errorf("at first: %d of %d", read, total)
	}
	drain(t, s)
	if read, total := s.Progress(); read != total {
		t.Errorf("at the end: %d of %d", read, total)
	}
	s, err = intake.Open([]string{a, "-"}, strings.NewReader("x\ny\n"), intake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	drain(t, s)
	if read, total := s.Progress(); read != 8 || total != 0 {
		t.Errorf("with standard input: %d of %d", read, total)
	}
}

func TestNextAfterCloseIsAnError(t *testing.T) {
	s, err := intake.Open([]string{writeFile(t, "a.txt", "a\nb\n")}, nil, intake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Next(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Next(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("got %v", err)
	}
}
