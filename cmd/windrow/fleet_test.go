package main_test

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"
)

// doubling is a handler whose result tells which row it was made of.
const doubling = `{double: (.n * 2)}`

// fleet is several workers on one database, one of which is killed now and then.
type fleet struct {
	*place
	table   *table
	chance  *rand.Rand
	args    []string
	workers []*process
	all     []*process
}

// newFleetOf starts n workers on rows rows.
func newFleetOf(p *place, n, rows int) *fleet {
	p.t.Helper()
	p.load(rows)
	seed := rand.Uint64()
	p.t.Logf("seed %d", seed)
	f := &fleet{
		place:  p,
		table:  p.table(),
		chance: rand.New(rand.NewPCG(seed, 0)),
		args:   []string{"work", "--until-empty", "--lease", "2s", "-j", "2", "--max-batch", "40", "--max-attempts", "50", "--jq", doubling},
	}
	f.table.watch()
	for range n {
		f.workers = append(f.workers, f.hire())
	}
	return f
}

func (f *fleet) hire() *process {
	f.t.Helper()
	worker := f.start(f.args...)
	f.all = append(f.all, worker)
	return worker
}

// killOne kills a worker by chance once done rows are done, and starts another.
func (f *fleet) killOne(done int) {
	f.t.Helper()
	eventually(f.t, fmt.Sprintf("%d rows done", done), func() bool { return f.table.done() >= done })
	<-time.After(time.Duration(f.chance.IntN(50)) * time.Millisecond) // anywhere within a batch
	i := f.chance.IntN(len(f.workers))
	f.workers[i].kill()
	f.workers[i] = f.hire()
}

// killAll kills all workers at an instant at which they hold rows. That none of
// them lets go first, each is stopped before.
func (f *fleet) killAll() {
	f.t.Helper()
	eventually(f.t, "rows held when all stand still", func() bool {
		for _, w := range f.workers {
			w.signal(syscall.SIGSTOP)
		}
		if f.table.held() > 0 {
			return true
		}
		for _, w := range f.workers {
			w.signal(syscall.SIGCONT)
		}
		return false
	})
	for _, w := range f.workers {
		w.kill()
	}
}

// wantsAllRight checks every row, with the table as the oracle.
func (f *fleet) wantsAllRight(rows int) {
	f.t.Helper()
	f.table.wantsAcceptedOnce(rows)
	f.table.wants(map[string]int{
		"is_processed AND error IS NULL AND round = 0": rows,
		"attempts = losses + 1":                        rows, // tried to the end once, the other tries died
		"checkouts >= attempts":                        rows,
		"losses > 0 AND checkouts < 2":                 0,
	})
	for i, r := range f.table.rows("true") {
		if want := 2 * (i + 1); r.Result == nil || digits(*r.Result) != fmt.Sprint(want) {
			f.t.Fatalf("row %d has the result %v, want double: %d", r.ID, text(r.Result), want)
		}
	}
	if f.table.count("losses > 0") == 0 {
		f.t.Error("no row was lost with its worker: the kills hit nothing")
	}
}

// digits are the digits of a JSON text.
func digits(json string) string {
	var out []byte
	for _, c := range []byte(json) {
		if c >= '0' && c <= '9' {
			out = append(out, c)
		}
	}
	return string(out)
}

func text(s *string) string {
	if s == nil {
		return "null"
	}
	return *s
}

func testKilledFleet(t *testing.T, p *place, workers, rows int) {
	const kills = 8
	f := newFleetOf(p, workers, rows)
	for k := range kills {
		f.killOne((k + 1) * rows / (kills + 4))
	}
	f.killAll()
	held := f.table.rows("NOT is_processed AND checked_out_by IS NOT NULL")
	if len(held) == 0 {
		t.Fatal("nothing was held")
	}
	killed := time.Now()
	last := f.hire()
	// A check-in may have been on its way when its worker died.
	first := fmt.Sprintf("id = %d AND (is_processed OR checkouts > %d)", held[0].ID, held[0].Checkouts)
	// The lease of 2 s, the start of a process, and what a busy machine takes.
	within(t, 10*time.Second, "a row of the dead fleet is checked out again", func() bool { return f.table.count(first) == 1 })
	last.end().wants(0)
	t.Logf("%d rows were held by the dead fleet; %v later all were done", len(held), time.Since(killed).Round(time.Millisecond))
	f.wantsAllRight(rows)
}

func TestAFleetKilledAtRandomLosesNothing(t *testing.T) {
	t.Run("postgres", func(t *testing.T) { testKilledFleet(t, newFleet(t), 4, 20_000) })
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		testKilledFleet(t, newPlace(t), 2, fewer(20_000, 5_000))
	})
}
