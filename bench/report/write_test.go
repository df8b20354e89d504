package report_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windrow-go/windrow/bench"
	"github.com/windrow-go/windrow/bench/report"
)

// result is a run at so many rows/s, on one machine and server.
func result(scenario, subject string, round int, rate float64, p bench.Parameters) bench.Result {
	return bench.Result{
		Scenario: scenario, Subject: subject, Round: round, Parameters: p, RowsPerSecond: rate,
		Machine: bench.Machine{System: "linux/amd64", Cores: 2, Memory: 8 << 30, Go: "go1.26"},
		Server:  bench.Server{Engine: "PostgreSQL", Version: "15.1", Settings: map[string]string{"fsync": "on"}},
		Began:   time.Date(2026, 1, round, 0, 0, 0, 0, time.UTC),
	}
}

// write returns the page, and the names of the charts.
func write(t *testing.T, results ...bench.Result) (page, dir string, charts []string) {
	t.Helper()
	dir = t.TempDir()
	files, err := report.Write(results, dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "benchmarks.md"))
	if err != nil || files[0] != filepath.Join(dir, "benchmarks.md") {
		t.Fatalf("the first file is %s: %v", files[0], err)
	}
	for _, path := range files[1:] {
		name := filepath.Base(path)
		if !strings.Contains(string(text), "](benchmarks/"+name+")") {
			t.Errorf("the page does not refer to %s", name)
		}
		charts = append(charts, name)
	}
	return string(text), dir, charts
}

// rows returns the cells of the page's table rows that begin with a cell.
func rows(page, first string) [][]string {
	var found [][]string
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if cells[0] == first {
			found = append(found, cells)
		}
	}
	return found
}

func mention(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
}

func TestPageShowsMediansOfTheRounds(t *testing.T) {
	p := bench.Parameters{Rows: 1_000_000, Processes: 8, Concurrency: 4, Payload: 200}
	var results []bench.Result
	for i, rate := range []float64{30_000, 10_000.4, 21_000} {
		r := result("drain", "windrow", i+1, rate, p)
		r.CheckOuts, r.ConflictsPerCheckOut = 100, []float64{0.002, 0, 0.00131}[i]
		r.CheckOutP50, r.CheckOutP95, r.CheckOutP99 = 1.234, 2.5+float64(i), 12.34
		r.Figures = map[string]float64{"last_1_percent_seconds": 0.5 - float64(i)/10}
		results = append(results, r)
	}
	page, _, charts := write(t, results...)
	mention(t, page, "21,000 (10,000–30,000)", "1.23 / 3.50 / 12.3", "0.13 %", "8 × 4", "auto", "1,000,000", "0 / 0",
		"`last_1_percent_seconds`", "0.400", "3 rounds each", "Measured from 2026-01-01 to 2026-01-03",
		"linux/amd64, 2 cores, 8.0 GiB of memory, go1.26", "PostgreSQL 15.1: `fsync` on",
		"windrow bench drain --rows 1000000 --processes 8 --concurrency 4 --payload 200 --rounds 3")
	if len(charts) != 0 {
		t.Errorf("charts without data: %q", charts)
	}
}

func TestMedianOfTwoRoundsIsBetweenThem(t *testing.T) {
	page, _, _ := write(t,
		result("drain", "windrow", 1, 10, bench.Parameters{}), result("drain", "windrow", 2, 15.5, bench.Parameters{}))
	mention(t, page, "12.8 (10–15.5)")
}

func TestColumnsWithoutValuesAreLeftOut(t *testing.T) {
	bare := result("drain", "windrow", 1, 100, bench.Parameters{Rows: 10})
	page, _, _ := write(t, bare)
	for _, title := range []string{"case", "check-out p50", "conflicts per", "WAL", "CPU", "processes ×", "batch |", "rounds |"} {
		if strings.Contains(page, "| "+title) {
			t.Errorf("a column %q without values in:\n%s", title, page)
		}
	}
	full := result("drain", "other", 1, 100, bench.Parameters{Rows: 10})
	full.Case, full.WALBytesPerRow, full.ServerMicros, full.CheckOuts = "a | b", 1234.5, 20, 1
	page, _, _ = write(t, bare, full)
	mention(t, page, `a \| b`, "| WAL, bytes/row |", "| 1,235 |", "| – |", "conflicts per check-out", "| 0 % |")
}

func TestWhatDiffersIsNoFlagOfTheCommand(t *testing.T) {
	page, _, _ := write(t,
		result("scale", "windrow", 1, 1, bench.Parameters{Rows: 10, Processes: 8}),
		result("scale", "windrow", 1, 1, bench.Parameters{Rows: 20, Processes: 8}))
	mention(t, page, "\nwindrow bench scale --processes 8\n")
}

func TestRatiosAreMediansOfTheRatiosOfRounds(t *testing.T) {
	ours, theirs := bench.Parameters{Rows: 10, Processes: 2}, bench.Parameters{Rows: 10, Processes: 2, Batch: 100}
	var results []bench.Result
	for i, rates := range [][2]float64{{10, 10}, {60, 20}, {40, 20}, {90, 0}} { // 1, 3, 2, and none
		results = append(results, result("drain", "windrow", i+1, rates[0], ours), result("drain", "limit", i+1, rates[1], theirs))
	}
	results = append(results, result("drain", "windrow", 5, 1, ours)) // limit has no such round
	elsewhere := result("drain", "limit", 1, 1, ours)
	elsewhere.Case = "another"
	page, _, charts := write(t, append(results, elsewhere)...)
	found := rows(page, "limit")
	i := slices.IndexFunc(found, func(cells []string) bool { return slices.Contains(cells, "1×–3×") })
	if i < 0 {
		t.Fatalf("no ratio in:\n%s", page)
	}
	if got, want := found[i], []string{"limit", "100", "2×", "1×–3×", "3"}; !slices.Equal(got, want) {
		t.Errorf("the ratio's row is %q, want %q", got, want)
	}
	if ratios := strings.Count(page, "×–"); ratios != 1 {
		t.Errorf("%d ratios, want 1:\n%s", ratios, page)
	}
	if !slices.Equal(charts, []string{"drain-subjects.svg"}) {
		t.Errorf("charts %q", charts)
	}
}

func TestRatioIsToTheRunThatIsMostAlike(t *testing.T) {
	page, _, _ := write(t,
		result("drain", "windrow", 1, 100, bench.Parameters{Rows: 10, Processes: 8, Batch: 5}),
		result("drain", "limit", 1, 50, bench.Parameters{Rows: 10, Processes: 8, Batch: 5}),
		result("drain", "limit", 1, 25, bench.Parameters{Rows: 10, Processes: 8, Batch: 6}),
		result("drain", "limit", 1, 10, bench.Parameters{Rows: 20, Processes: 8, Batch: 5}))
	mention(t, page, "| limit | 2× |")
	if strings.Contains(page, "4×") || strings.Contains(page, "10×") {
		t.Errorf("compared with others too:\n%s", page)
	}
}

func TestServersAreTheSameUnlessSettingsContradict(t *testing.T) {
	a, b, c := result("drain", "windrow", 1, 4, bench.Parameters{}), result("drain", "river", 1, 2, bench.Parameters{}), result("drain", "gue", 1, 1, bench.Parameters{})
	b.Server.Settings = map[string]string{"wal_level": "replica"}
	page, _, _ := write(t, a, b)
	mention(t, page, "Server: PostgreSQL 15.1: `fsync` on, `wal_level` replica.", "| river | 2× |")
	c.Server.Settings = map[string]string{"fsync": "off"}
	page, _, _ = write(t, a, c)
	mention(t, page, "- **S2**: PostgreSQL 15.1: `fsync` off", "| server |", "| S2 |")
	if strings.Contains(page, "compared with") {
		t.Errorf("compared across servers:\n%s", page)
	}
}

func TestLostRowsStandOut(t *testing.T) {
	r := result("crash", "windrow", 1, 1, bench.Parameters{})
	r.Lost, r.Doubled = 1200, 1
	page, _, _ := write(t, r)
	mention(t, page, "**1,200 / 1**", "worth nothing")
}

func TestWriteKeepsTheOldPageWithoutResults(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "benchmarks.md", "old")
	if _, err := report.Write(nil, dir); !errors.Is(err, report.ErrNoResults) {
		t.Errorf("error %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "benchmarks.md")); string(text) != "old" {
		t.Errorf("the page is now %q: %v", text, err)
	}
}

func TestChartsSayWhatTheyShow(t *testing.T) {
	page, dir, charts := write(t, chartable()...)
	tests := map[string][]string{
		"throughput-subjects.svg":  {"windrow", "li &lt;mit&gt;", "60,000", "20,000", "range of the rounds"},
		"throughput-over-time.svg": {"windrow", "seconds since the first check-out", "rows/s"},
		"contention-windrow.svg":   {"automatic batch", "batch 1", "processes", "conflicts per check-out, %", ">40<"},
		"scale-check-out.svg":      {"p50", "p95", "p99", "rows in the table", ">1,000,000<"},
		"snapshot-over-time.svg":   {"without", "old snapshot held"},
	}
	for name, wanted := range tests {
		if !slices.Contains(charts, name) {
			t.Errorf("no %s among %q", name, charts)
			continue
		}
		svg, err := os.ReadFile(filepath.Join(dir, "benchmarks", name))
		if err != nil {
			t.Fatal(err)
		}
		wellFormed(t, name, string(svg))
		mention(t, string(svg), append(wanted, "<title>", "Liberation Sans, Arial")...)
	}
	if len(charts) != len(tests) {
		t.Errorf("charts %q", charts)
	}
	mention(t, page, "![scale: time of a check-out by size of the table")
}

// chartable has the data for one chart of each kind.
func chartable() []bench.Result {
	add := func(all []bench.Result, r bench.Result, label string) []bench.Result {
		r.Case, r.Seconds, r.PerSecond = label, 4.5, []int64{10_000, 20_000, 15_000, 12_000, 300}
		r.CheckOuts, r.CheckOutP50, r.CheckOutP95, r.CheckOutP99 = 1, 1, 2, 50
		return append(all, r)
	}
	fleet := bench.Parameters{Rows: 100_000, Processes: 8, Concurrency: 4, Payload: 200}
	all := add(nil, result("throughput", "windrow", 1, 60_000, fleet), "")
	all = add(all, result("throughput", "li <mit>", 1, 20_000, fleet), "")
	all = add(all, result("snapshot", "windrow", 1, 20_000, fleet), "without")
	all = add(all, result("snapshot", "windrow", 1, 20_000, fleet), "old snapshot held")
	for _, n := range []int{2, 8, 40} {
		for batch := range 2 { // 0 is automatic
			p := bench.Parameters{Rows: 1000, Processes: n, Batch: batch}
			all = add(all, result("contention", "windrow", 1, 10, p), fmt.Sprintf("%d processes, batch %d", n, batch))
		}
		p := fleet
		p.Rows = n * 500_000
		all = add(all, result("scale", "windrow", 1, 10, p), fmt.Sprintf("%d rows", p.Rows))
	}
	return all
}

func wellFormed(t *testing.T, name, svg string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(svg))
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%s is not well formed: %v", name, err)
		}
	}
}
