package intake_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/windrow-go/windrow/intake"
	"github.com/windrow-go/windrow/internal/jsonb"
)

// fuzzFormat reads anything as the format: it must end, with no more records than
// there are bytes, in rising order, each fit for the database.
func fuzzFormat(f *testing.F, format intake.Format, seeds ...string) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, content string) {
		s, err := intake.Open([]string{"-"}, strings.NewReader(content), intake.Options{Format: format})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		last := int64(0)
		for n := 0; ; n++ {
			r, err := s.Next()
			var bad *intake.BadRecord
			if errors.As(err, &bad) {
				r.Line = bad.Line
			} else if err != nil {
				if err != io.EOF && !strings.Contains(err.Error(), "compress") && !strings.Contains(err.Error(), "the file is") {
					t.Fatal(err)
				}
				return
			} else if err := jsonb.Check(r.Data); err != nil {
				t.Fatalf("%q: %v", r.Data, err)
			}
			if n > len(content) || r.Line < last || r.Line < 1 {
				t.Fatalf("record %d of %d bytes is on line %d, after line %d", n, len(content), r.Line, last)
			}
			last = r.Line
			if bad != nil && bad.Fatal {
				return
			}
			_, _ = intake.Field(r.Data, "a")
		}
	})
}

func FuzzCSV(f *testing.F) {
	fuzzFormat(f, intake.CSV, "a,b\n1,\"2\n\"\n", "a\n\"x\"y\n\"z", "\ufeffa\r\nb\r\n\r\n", "a,b\n1\n\xff,\x00\n", "a;b\n", "\"a\n\nb\",c\n1,2\n")
}

func FuzzJSONL(f *testing.F) {
	fuzzFormat(f, intake.JSONL, "{\"a\":1}\n\n[1,\n\"\\u0000\"\r\n", "1", "\xef\xbb\xbf{}")
}

func FuzzJSON(f *testing.F) {
	fuzzFormat(f, intake.JSON, "[1,{\"a\":\"]\\\"\"},\n x]", "{\"a\":1}{}", "{\"a\":[", "[\"", "1 2\"a\"[]", "[1][2]")
}

func FuzzAuto(f *testing.F) {
	fuzzFormat(f, intake.Auto, "a\nb", "[x]\n", "{\"a\":1}\n{}", "\"a\"\n", "\x1f\x8b\x08", "\x28\xb5\x2f\xfd", "\xff\xfea\x00")
}
