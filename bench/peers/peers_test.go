package main

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windrow-go/windrow/bench"
)

func TestMain(m *testing.M) {
	if isWorker() {
		os.Exit(work(os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// small is for servers that are not measured.
var small = setting{postgres: map[string]string{"shared_buffers": "64MB"}}

func TestEachPeerWorksEachJobOnce(t *testing.T) {
	for _, p := range peers() {
		t.Run(p.name, func(t *testing.T) {
			plan := bench.Parameters{
				Rows: 300, Processes: min(p.processes, 4), Concurrency: min(p.workers, 20), Payload: 200}
			var stderr bytes.Buffer
			result, err := measure(t.Context(), p, plan, small, &stderr)
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr.String())
			}
			if result.Done != 300 || result.Lost != 0 || result.Doubled != 0 {
				t.Errorf("%d of 300 jobs done, %d lost, %d worked once more\n%s",
					result.Done, result.Lost, result.Doubled, stderr.String())
			}
			checkFigures(t, result)
		})
	}
}

func checkFigures(t *testing.T, r bench.Result) {
	t.Helper()
	var sum int64
	for _, n := range r.PerSecond {
		sum += n
	}
	if sum != r.Done {
		t.Errorf("the seconds' rows %v add up to %d, not %d", r.PerSecond, sum, r.Done)
	}
	positive := map[string]float64{
		"seconds": r.Seconds, "rows per second": r.RowsPerSecond,
		"first quarter": r.FirstQuarter, "last quarter": r.LastQuarter,
		"client's processor time": r.ClientMicros, "client's memory": float64(r.ClientMemory),
	}
	if r.Server.Engine == enginePostgres {
		positive["WAL"], positive["server's processor time"] = r.WALBytesPerRow, r.ServerMicros
		if r.Server.Settings["fsync"] != "on" {
			t.Errorf("fsync is %q", r.Server.Settings["fsync"])
		}
	}
	for name, figure := range positive {
		if figure <= 0 {
			t.Errorf("%s: %v", name, figure)
		}
	}
	if r.Server.Version == "" {
		t.Error("the engine's version is missing")
	}
}

func TestRunPrintsALineForEachRound(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), strings.Fields("--peer goqite --rows 50 --workers 3 --rounds 2 --full"), &stdout, &stderr)
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, stderr.String())
	}
	var rounds []int
	for decoder := json.NewDecoder(&stdout); decoder.More(); {
		var r bench.Result
		if err := decoder.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if r.Scenario != "sqlite" || r.Subject != "goqite" || r.Case != "synchronous=FULL" || r.Done != 50 {
			t.Errorf("a line of %q, %q, %q, %d jobs done", r.Scenario, r.Subject, r.Case, r.Done)
		}
		rounds = append(rounds, r.Round)
	}
	if !slices.Equal(rounds, []int{1, 2}) {
		t.Errorf("rounds %v", rounds)
	}
}

func TestRunRefuses(t *testing.T) {
	for _, args := range []string{"--peer nobody", "--rows -1", "--rounds 0", "extra"} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), strings.Fields(args), &stdout, &stderr); code != 2 || stderr.Len() == 0 {
			t.Errorf("%s: exit code %d, %q", args, code, stderr.String())
		}
	}
}

func TestTallyFindsLostAndDoubledJobs(t *testing.T) {
	r := bench.Result{Parameters: bench.Parameters{Rows: 4}, Done: 4}
	reports := []report{{Times: []byte{1, 0, 2, 0}}, {Times: []byte{1, 0, 0, 1}}}
	if err := addTally(t.Context(), &r, nil, reports); err != nil {
		t.Fatal(err)
	}
	if r.Lost != 1 || r.Doubled != 2 { // job 1; jobs 0 and 2
		t.Errorf("%d lost, %d doubled", r.Lost, r.Doubled)
	}
}

func TestSeriesFromLooks(t *testing.T) {
	looks := []look{
		{0, 0},
		{500 * time.Millisecond, 100},
		{1500 * time.Millisecond, 300}, // 200 a second: 100 of them in the first second
		{2 * time.Second, 300},         // nothing for half a second
		{2400 * time.Millisecond, 400},
	}
	if got := perSecond(looks); !slices.Equal(got, []int64{200, 100, 100}) {
		t.Errorf("per second: %v", got)
	}
	if got := pace(looks, 0, 0.25); got != 200 {
		t.Errorf("first quarter: %v", got)
	}
	if got := pace(looks, 0.75, 1); got < 111.1 || got > 111.2 { // 100 in 0.9 s
		t.Errorf("last quarter: %v", got)
	}
}

func TestNewJobsHaveTheirSize(t *testing.T) {
	for _, j := range newJobs(99_998, 100_002, 200) {
		text, err := j.encode()
		if err != nil {
			t.Fatal(err)
		}
		if n := len(text); n < 198 || n > 202 {
			t.Errorf("job %d has %d bytes", j.Number, n)
		}
	}
}
