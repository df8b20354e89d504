package main_test

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"
)

// quickRows are done at once by quickThenUntilGo, so that the worker learns to
// hold more rows than it has slots.
const quickRows = 30

const quickThenUntilGo = `if [ "$WINDROW_ROW_ID" -le 30 ]; then echo quick; exit; fi
` + untilGo + `echo done`

// stopped is a worker that has two rows in its handlers, and others that are not
// begun, when it gets a signal.
type stopped struct {
	*place
	table  *table
	worker *process
	begun  []string
}

func stopWorker(p *place, s syscall.Signal, args ...string) *stopped {
	p.t.Helper()
	const rows = 2 * quickRows
	p.load(rows)
	b := p.table()
	worker := p.start(append(append([]string{"work"}, args...), "-j", "2", "--exec", quickThenUntilGo)...)
	eventually(p.t, "two rows are begun, and others held", func() bool {
		return len(p.lines("begun")) == 2 && b.held() > 2
	})
	worker.signal(s)
	return &stopped{place: p, table: b, worker: worker, begun: p.lines("begun")}
}

// wantsGivenBack checks that nothing is held, and that the rows that are not done
// are as fresh as before.
func (s *stopped) wantsGivenBack(done int) {
	s.t.Helper()
	s.table.wants(map[string]int{
		"is_processed AND error IS NULL": done,
		"NOT is_processed AND checked_out_by IS NULL AND attempts = 0 AND losses = 0 AND round = 0": 2*quickRows - done,
	})
	if s.table.count("NOT is_processed AND checkouts > 0") == 0 {
		s.t.Error("no row was given back: none had been held")
	}
	if now := s.lines("begun"); !slices.Equal(now, s.begun) {
		s.t.Errorf("rows %v were begun, want only %v, as before the signal", now, s.begun)
	}
}

func TestAStopFinishesWhatIsBegunAndGivesTheRestBack(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		for _, tt := range []struct {
			signal syscall.Signal
			args   []string
			code   int
		}{
			{syscall.SIGTERM, nil, 0},
			{syscall.SIGTERM, []string{"--until-empty"}, 143},
			{syscall.SIGINT, []string{"--until-empty"}, 130},
		} {
			t.Run(fmt.Sprint(tt.signal, tt.args), func(t *testing.T) {
				own := newPlace(t)
				if p.database != "" {
					own = newFleet(t)
				}
				s := stopWorker(own, tt.signal, tt.args...)
				within(t, 10*time.Second, "all but the begun rows are given back", func() bool { return s.table.held() == 2 })
				own.write("go", "")
				s.worker.end().wants(tt.code, "given back")
				s.wantsGivenBack(quickRows + 2)
			})
		}
	})
}

func TestAfterTheGracePeriodHandlersAreCutAndTheirRowsGivenBack(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		s := stopWorker(p, syscall.SIGTERM, "--grace", "300ms")
		o := s.worker.end().wants(0, "given back")
		if o.took > 10*time.Second {
			t.Errorf("the stop took %v", o.took)
		}
		s.wantsGivenBack(quickRows)
	})
}

func TestTheSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	for signal, code := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGINT: 130} {
		s := stopWorker(newPlace(t), signal)
		within(t, 10*time.Second, "the first signal is heard", func() bool { return s.table.held() == 2 })
		s.worker.signal(signal)
		if o := s.worker.end().wants(code); o.took > 10*time.Second {
			t.Errorf("%v took %v to end the worker", signal, o.took)
		}
	}
}

func TestARunStoppedInTheMiddleGoesOn(t *testing.T) {
	t.Parallel()
	for signal, code := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGINT: 130} {
		p := newPlace(t)
		p.write("rows.jsonl", numbers(20))
		args := []string{"run", "rows.jsonl", "-j", "2", "--exec", untilGo + "echo done"}
		run := p.start(args...)
		eventually(t, "two rows are begun", func() bool { return len(p.lines("begun")) == 2 })
		run.signal(signal)
		within(t, 10*time.Second, "the signal is heard", func() bool { return p.file("rows.windrow.db").held() <= 2 })
		p.write("go", "")
		run.end().wants(code, "the same command goes on from here")
		if p.has("rows.results.jsonl") {
			t.Error("a run that was stopped wrote results")
		}
		p.ok(args...).wants(0, "20 done")
		p.file("rows.windrow.db").wants(map[string]int{"is_processed AND error IS NULL AND attempts = 1 AND losses = 0": 20})
	}
}
