package main_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/windrow-go/windrow/internal/faultproxy"
	"github.com/windrow-go/windrow/internal/pgcluster"
	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
)

func TestWorkersOutliveAKilledServer(t *testing.T) {
	t.Parallel()
	const rows = 10_000
	cluster := pgtest.Cluster(t, pgcluster.Options{})
	p := newPlace(t)
	p.database = cluster.URL("postgres")
	p.ok("migrate", "up")
	p.load(rows)
	before := p.table()
	before.watch()
	worker := []string{"work", "--until-empty", "--lease", "5s", "-j", "2", "--max-batch", "50", "--jq", doubling}
	workers := []*process{p.start(worker...), p.start(worker...)}
	eventually(t, "a third is done", func() bool { return before.done() > rows/3 })
	if err := cluster.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, w := range workers {
		eventually(t, "the worker notices", func() bool { return contains(w.stderr.String(), "out of reach") })
	}
	if err := cluster.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, w := range workers {
		w.end().wants(0, "the database is back")
	}
	after := p.table()
	after.wantsAcceptedOnce(rows)
	after.wants(map[string]int{
		"is_processed AND error IS NULL AND round = 0 AND CAST(result->>'double' AS int) = 2 * CAST(data->>'n' AS int)": rows,
		"losses > 0 AND attempts <> losses + 1": 0,
	})
}

func TestACheckInCutAtCommitIsAppliedOnce(t *testing.T) {
	t.Parallel()
	for name, when := range map[string]faultproxy.When{
		"before the commit": faultproxy.BeforeForward,
		"after the commit":  faultproxy.AfterReply,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const rows = 500
			p := newFleet(t)
			p.load(rows)
			b := p.table()
			b.watch()
			proxy, through := pgtest.Proxy(t, p.database)
			proxy.CutAtCommit(2, when, "WITH settled AS")
			p.database = through
			// The lease is long: rows of a worker that went wrong would not be back in time.
			worker := p.start("work", "--until-empty", "--lease", "10m", "--max-batch", "20", "--jq", doubling)
			worker.end().wants(0, "500 done", "the database is back")
			if proxy.Cuts() != 1 {
				t.Errorf("%d connections were cut, want 1", proxy.Cuts())
			}
			b.wantsAcceptedOnce(rows)
			b.wants(map[string]int{
				"is_processed AND error IS NULL AND checkouts = 1 AND attempts = 1 AND losses = 0": rows,
			})
		})
	}
}

// untilGo is a handler that says in a log which row it has begun, and goes on
// once there is a file named go, or after a minute, which no test waits for.
const untilGo = `echo "$WINDROW_ROW_ID" >> begun
n=0
while [ ! -e go ] && [ $n -lt 3000 ]; do sleep 0.02; n=$((n+1)); done
`

// stopBetweenWrites stops a worker while it holds no lock on an SQLite file: stopped in
// the middle of a write, it would keep everybody from writing.
func stopBetweenWrites(worker *process, b *table) {
	for worker.signal(syscall.SIGSTOP); !b.writable(); worker.signal(syscall.SIGSTOP) {
		worker.signal(syscall.SIGCONT)
		time.Sleep(50 * time.Millisecond)
	}
}

func TestTheLateResultsOfAStoppedWorkerAreRefused(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		const rows = 6
		p.load(rows)
		b := p.table()
		b.watch()
		late := p.start("work", "--until-empty", "--lease", "2s", "-j", "2", "--exec", untilGo+"echo late; echo $WINDROW_ROW_ID >> ended")
		eventually(t, "two rows are begun", func() bool { return len(p.lines("begun")) == 2 })
		stopBetweenWrites(late, b)
		stalled := b.rows("checked_out_by IS NOT NULL")
		p.ok("work", "--until-empty", "--lease", "2s", "--exec", "echo punctual").wants(0, "6 done")
		p.write("go", "")
		eventually(t, "the handlers end, unheard", func() bool { return len(p.lines("ended")) == 2 })
		late.signal(syscall.SIGCONT)
		late.end().wants(0, "0 done", "lost to another worker")
		b.wantsAcceptedOnce(rows)
		b.wants(map[string]int{`is_processed AND error IS NULL AND CAST(result AS text) = '"punctual"'`: rows})
		for _, r := range stalled {
			again := b.rows("true")[r.ID-1]
			if again.Checkouts <= r.Checkouts || again.Losses != 1 || again.Attempts != 2 {
				t.Errorf("row %d: %d check-outs after %d, %d attempts, %d losses; want more, 2 and 1",
					r.ID, again.Checkouts, r.Checkouts, again.Attempts, again.Losses)
			}
		}
	})
}

// Here the late check-in itself is on its way when the lease runs out.
func TestACheckInThatArrivesTooLateIsRefused(t *testing.T) {
	t.Parallel()
	const rows = 6
	p := newFleet(t)
	p.load(rows)
	b := p.table()
	b.watch()
	proxy, through := pgtest.Proxy(t, p.database)
	far := *p
	far.database = through
	late := far.start("work", "--until-empty", "--lease", "2s", "-j", "2", "--exec", untilGo+"echo late")
	eventually(t, "two rows are begun", func() bool { return len(p.lines("begun")) == 2 })
	proxy.Delay(2 * time.Second) // BEGIN waits once, the check-in twice
	p.write("go", "")
	p.ok("work", "--until-empty", "--lease", "2s", "--exec", "echo punctual").wants(0, "6 done")
	proxy.Delay(0)
	late.end().wants(0, "0 done", "2 lost to another worker")
	b.wantsAcceptedOnce(rows)
	b.wants(map[string]int{`is_processed AND error IS NULL AND CAST(result AS text) = '"punctual"'`: rows})
}

func TestALongRowKeepsItsLease(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		p.load(2)
		b := p.table()
		args := []string{"work", "--until-empty", "--lease", "2s", "-j", "1", "--exec", `echo "$WINDROW_ROW_ID" >> begun; sleep 5; echo done`}
		began := time.Now()
		one, two := p.start(args...), p.start(args...)
		one.end().wants(0)
		two.end().wants(0)
		if took := time.Since(began); took < 5*time.Second {
			t.Errorf("the rows took %v, less than their handler", took)
		}
		if begun := p.lines("begun"); len(begun) != 2 {
			t.Errorf("the handler ran for the rows %v, want each once", begun)
		}
		b.wants(map[string]int{"is_processed AND error IS NULL AND checkouts = 1 AND attempts = 1": 2})
	})
}
