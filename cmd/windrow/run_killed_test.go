package main_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
)

// killedRun is a job that is killed in its three stages.
type killedRun struct {
	*place
	chance *rand.Rand
	args   []string
	took   time.Duration // by an undisturbed one
	table  *table        // once there is one
}

// wide are n rows of numbers that are large enough for several chunks of a load,
// and for the results to take a while to write.
func wide(n int) string {
	const kilobytes = 2
	space := `{"space":"` + strings.Repeat(" ", kilobytes<<10) + `",`
	return strings.ReplaceAll(numbers(n), "{", space)
}

func TestARunKilledInEveryStageEndsWithTheSameFile(t *testing.T) {
	t.Parallel()
	const rows = 6_000
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	args := []string{"run", "rows.jsonl", "-j", "2", "--max-batch", "100", "--jq", doubling}
	calm := newPlainPlace(t)
	calm.write("rows.jsonl", wide(rows))
	undisturbed := calm.ok(args...)

	k := &killedRun{place: newPlainPlace(t), chance: rand.New(rand.NewPCG(seed, 0)), args: args, took: undisturbed.took}
	k.write("rows.jsonl", wide(rows))
	k.killWhile("loading", k.loading)
	k.killWhile("working", k.working)
	k.killWhile("writing results", k.exporting)
	k.ok(args...)

	if want, got := calm.read("rows.results.jsonl"), k.read("rows.results.jsonl"); got != want {
		t.Errorf("the file after three kills differs: %d bytes, want %d", len(got), len(want))
	}
	wantsEachIDOnce(t, k.read("rows.results.jsonl"), rows)
	for _, pattern := range []string{"*.tmp", "*.old-*"} {
		if left := k.files(pattern); len(left) > 0 {
			t.Errorf("left over: %v", left)
		}
	}
}

// killWhile starts the job and kills it by chance in a stage. A start that is
// through before the kill comes is set back to a missing output and made again.
func (k *killedRun) killWhile(stage string, in func() bool) {
	k.t.Helper()
	const starts = 20
	for range starts {
		run := k.start(k.args...)
		for !run.over() && !in() {
			<-time.After(time.Millisecond)
		}
		<-time.After(time.Duration(k.chance.Int64N(int64(k.took/50) + 1)))
		hit := !run.over() && in()
		run.kill()
		if hit && !k.has("rows.results.jsonl") {
			return
		}
		k.t.Logf("%s: missed", stage)
		_ = os.Remove(k.path("rows.results.jsonl")) // not there if it was hit early
	}
	k.t.Fatalf("never killed while %s", stage)
}

func (k *killedRun) loading() bool {
	return k.has("rows.windrow.db-wal") && k.finished() == 0
}

func (k *killedRun) working() bool { return k.finished() > 100 }

// finished counts the rows that are done, as far as there is a database.
func (k *killedRun) finished() int {
	if !k.has("rows.windrow.db") {
		return 0
	}
	if k.table == nil {
		k.table = k.file("rows.windrow.db")
	}
	n, err := k.table.tryCount("is_processed")
	if err != nil {
		return 0 // no tables yet
	}
	return n
}

func (k *killedRun) exporting() bool { return len(k.files(".rows.results.jsonl.*.tmp")) > 0 }

func wantsEachIDOnce(t *testing.T, file string, rows int) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(file, "\n"), "\n")
	if len(lines) != rows {
		t.Fatalf("%d lines, want %d", len(lines), rows)
	}
	for i, line := range lines {
		var got struct {
			ID     int
			State  string
			Data   struct{ N int }
			Result struct{ Double int }
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		if got.ID != i+1 || got.Data.N != i+1 || got.Result.Double != 2*(i+1) || got.State != "done" {
			t.Fatalf("line %d is %+v", i+1, got)
		}
	}
}
