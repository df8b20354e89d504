package intake_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/windrow-go/windrow/intake"
)

type flight struct {
	Date        int64  `parquet:"date,timestamp(microsecond)"`
	Delay       int64  `parquet:"delay"`
	Distance    int64  `parquet:"distance"`
	Origin      string `parquet:"origin,dict"`
	Destination string `parquet:"destination,dict"`
}

// benchRows is how many rows the files of the benchmarks have.
const benchRows = 50_000

func benchmark(b *testing.B, name, content string) {
	path := writeFile(b, name, content)
	b.SetBytes(int64(len(content)))
	b.ReportAllocs()
	rows := 0
	for b.Loop() {
		s, err := intake.Open([]string{path}, nil, intake.Options{})
		if err != nil {
			b.Fatal(err)
		}
		for {
			if _, err := s.Next(); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
			rows++
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkParquet(b *testing.B) {
	rows := make([]flight, benchRows)
	for i := range rows {
		rows[i] = flight{int64(i) * 60e6, int64(i % 90), int64(i % 2500), fmt.Sprint("A", i%50), fmt.Sprint("B", i%60)}
	}
	benchmark(b, "in.parquet", parquetRows(b, rows))
}

func BenchmarkCSV(b *testing.B) {
	var s strings.Builder
	s.WriteString("date,delay,distance,origin,destination\n")
	for i := range benchRows {
		fmt.Fprintf(&s, "2001-01-01T00:00:%02dZ,%d,%d,\"A%d\",B%d\n", i%60, i%90, i%2500, i%50, i%60)
	}
	benchmark(b, "in.csv", s.String())
}

func benchJSON(end string) string {
	var s strings.Builder
	for i := range benchRows {
		fmt.Fprintf(&s, `{"date":"2001-01-01T00:00:%02dZ","delay":%d,"distance":%d,"origin":"A%d","destination":"B%d"}`, i%60, i%90, i%2500, i%50, i%60)
		if i < benchRows-1 {
			s.WriteString(end)
		}
	}
	return s.String()
}

func BenchmarkJSONL(b *testing.B) { benchmark(b, "in.jsonl", benchJSON("\n")) }

func BenchmarkJSON(b *testing.B) { benchmark(b, "in.json", "["+benchJSON(",\n")+"]") }
