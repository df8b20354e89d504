package bench_test

import (
	"testing"

	"github.com/windrow-go/windrow/bench"
)

// small is every scenario, small enough for a test.
var small = map[string]bench.Options{
	"throughput": {Rows: 3_000, Processes: 2, Seconds: 3},
	"contention": {Rows: 1_000, Processes: 3},
	"drain":      {Rows: 3_000, Processes: 3},
	"snapshot":   {Rows: 2_000, Processes: 2},
	"retries":    {Rows: 2_000, Processes: 2},
	"wide":       {Rows: 500, Processes: 2},
	"load":       {Rows: 2_000},
	"sqlite":     {Rows: 3_000},
	"crash":      {Rows: 20_000, Processes: 4},
	"reprocess":  {Rows: 2_000, Processes: 2, Seconds: 2},
	"growth":     {Rows: 2_000, Processes: 2, Seconds: 4},
}

// Every scenario runs, finds nothing lost or doubled, and measures something.
func TestScenarios(t *testing.T) {
	for name, opts := range small {
		t.Run(name, func(t *testing.T) {
			results := 0
			opts.Done = func(r bench.Result) {
				results++
				if r.Scenario != name || r.Done == 0 || r.RowsPerSecond <= 0 || r.Machine.Cores == 0 || r.Server.Version == "" {
					t.Errorf("a result without substance: %+v", r)
				}
				for figure := range r.Figures {
					if bench.AboutFigure(figure) == "" {
						t.Errorf("%s is not explained", figure)
					}
				}
			}
			if err := bench.Run(t.Context(), name, opts); err != nil {
				t.Fatal(err)
			}
			if results == 0 {
				t.Fatal("no result")
			}
		})
	}
}
