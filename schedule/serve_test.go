package schedule_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/windrow-go/windrow/schedule"
)

// patience is how long anything may take before a test gives up on it.
const patience = 30 * time.Second

// serve has a scheduler serve until the test ends, or until stop is called, which
// returns what Serve did.
func serve(t *testing.T, s *schedule.Scheduler) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(patience):
			return errors.New("it goes on serving")
		}
	})
	t.Cleanup(func() { check(t, stop()) })
	return stop
}

// stay is a function that tells when it starts, and why it was told to stop.
type stay struct {
	started chan schedule.Run
	stopped chan error
}

func newStay() *stay {
	return &stay{started: make(chan schedule.Run, 100), stopped: make(chan error, 100)}
}

func (s *stay) run(ctx context.Context, run schedule.Run, _ io.Writer) error {
	s.started <- run
	<-ctx.Done()
	s.stopped <- context.Cause(ctx)
	return context.Cause(ctx)
}

func await[T any](t testing.TB, what string, channel <-chan T) T {
	t.Helper()
	select {
	case v := <-channel:
		return v
	case <-time.After(patience):
		t.Fatalf("not within %s: %s", patience, what)
		panic("unreachable")
	}
}

// eventually waits for what another process does; there is nothing to wait on.
func eventually(t testing.TB, what string, yes func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !yes() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patience, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (f *fixture) awaitState(id int64, want schedule.State) schedule.Run {
	f.t.Helper()
	eventually(f.t, fmt.Sprintf("run %d is %s", id, want), func() bool { return f.run(id).State == want })
	return f.run(id)
}

func (f *fixture) runNow(name string) schedule.Run {
	f.t.Helper()
	run, err := f.RunNow(f.t.Context(), name, "me")
	check(f.t, err)
	return run
}

// A scheduler that was not woken would sleep for a minute.
func TestServeIsWokenByWhatAnotherProcessAddsOrAsksFor(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		ran := make(chan time.Time, 10)
		s := f.schedulerOn(f.open(), schedule.Options{Functions: map[string]schedule.Function{
			"f": func(context.Context, schedule.Run, io.Writer) error { ran <- time.Now(); return nil },
		}})
		f.every("a", time.Hour)
		serve(t, s)
		f.runNow("a")
		await(t, "the first run", ran)
		for range 3 {
			eventually(t, "nothing waits", func() bool { return f.get("a").Asked == nil && f.get("a").Running == nil })
			asked := time.Now()
			f.runNow("a")
			if took := await(t, "a run", ran).Sub(asked); took > 2*time.Second {
				t.Errorf("woken after %s", took)
			} else {
				t.Logf("woken after %s", took)
			}
		}
		added := f.add(schedule.Schedule{Name: "b", Rule: schedule.Once(), At: time.Now().Add(time.Second)})
		at := await(t, "the one added", ran)
		if late := at.Sub(added.DueAt); late < -50*time.Millisecond || late > time.Second {
			t.Errorf("%s late", late)
		} else {
			t.Logf("%s late", late)
		}
	})
}

// Several schedulers, two schedules and their on-demand runs share one lock.
func TestOneRunAtATimeHasALock(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		var going, most, ran atomic.Int32
		function := func(context.Context, schedule.Run, io.Writer) error {
			most.Store(max(most.Load(), going.Add(1)))
			time.Sleep(5 * time.Millisecond) // long enough for others to come in between
			going.Add(-1)
			ran.Add(1)
			return nil
		}
		f.add(schedule.Schedule{Name: "a", Rule: every(t, time.Hour), Lock: "group"})
		f.add(schedule.Schedule{Name: "b", Rule: every(t, time.Hour), Lock: "group"})
		for range 3 {
			serve(t, f.schedulerOn(f.open(), schedule.Options{Functions: map[string]schedule.Function{"f": function}}))
		}
		for i := range 10 {
			f.runNow("a")
			f.runNow("b")
			eventually(t, "both have run", func() bool { return int(ran.Load()) == 2*i+2 && f.count(`state = 'waiting' AND on_demand`) == 0 })
		}
		equal(t, "at a time", most.Load(), 1)
		eventually(t, "all are stored", func() bool { return f.count(`state = 'done'`) == 20 })
	})
}

func TestWithoutALockRunsOfAScheduleOverlap(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		f.add(schedule.Schedule{Name: "a", Rule: every(t, time.Hour), Lock: schedule.NoLock})
		function := newStay()
		serve(t, f.schedulerOn(f.open(), schedule.Options{Concurrency: 2, Grace: -1, Functions: map[string]schedule.Function{"f": function.run}}))
		f.runNow("a")
		await(t, "the first", function.started)
		f.runNow("a")
		await(t, "the second", function.started)
	})
}

func TestConcurrencyBoundsTheRunsOfAScheduler(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		var going, most atomic.Int32
		function := func(context.Context, schedule.Run, io.Writer) error {
			most.Store(max(most.Load(), going.Add(1)))
			time.Sleep(5 * time.Millisecond)
			going.Add(-1)
			return nil
		}
		for i := range 20 {
			name := fmt.Sprint("s", i)
			f.every(name, time.Hour)
			f.ago(name, time.Second)
		}
		s := f.schedulerOn(f.Store, schedule.Options{Concurrency: 3, Functions: map[string]schedule.Function{"f": function}})
		ticked, err := s.Tick(t.Context())
		check(t, err)
		equal(t, "started", ticked.Started, 20)
		if most.Load() > 3 {
			t.Errorf("%d at a time", most.Load())
		}
	})
}

func TestATickLeavesWhatIsHeldAndSaysSo(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		f.every("a", time.Hour)
		function := newStay()
		stop := serve(t, f.schedulerOn(f.open(), schedule.Options{Grace: -1, Functions: map[string]schedule.Function{"f": function.run}}))
		f.runNow("a")
		await(t, "the run", function.started)
		f.ago("a", time.Second)
		equal(t, "ticked", f.tick(noop), schedule.Ticked{Blocked: 1})
		if o := f.get("a"); o.Occupant == nil || o.Occupant.Holder == "" || o.Running == nil {
			t.Errorf("nobody has the lock: %+v", o)
		}
		check(t, stop())
		equal(t, "ticked", f.tick(noop), schedule.Ticked{Started: 1})
	})
}

func TestCommandsRunOnlyWhereTheyMay(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		mark := t.TempDir() + "/mark"
		f.add(schedule.Schedule{Name: "a", Rule: every(t, time.Hour), Command: []string{"touch", mark}})
		f.ago("a", time.Second)
		s, err := schedule.New(f.Store, schedule.Options{Functions: map[string]schedule.Function{"f": noop}})
		check(t, err)
		ticked, err := s.Tick(t.Context())
		check(t, err)
		equal(t, "ticked", ticked, schedule.Ticked{NotAllowed: 1})
		if _, err := os.Stat(mark); err == nil {
			t.Error("it ran")
		}
		equal(t, "ticked", f.tick(noop), schedule.Ticked{Started: 1})
		if _, err := os.Stat(mark); err != nil {
			t.Error(err)
		}
	})
}

func TestACommandSeesItsRunAndNoneOfTheSchedulersSettings(t *testing.T) {
	f := onSQLite(t, nil)
	t.Setenv("WINDROW_LEASE", "1s")
	t.Setenv("FROM_OUTSIDE", "yes")
	run := f.add(schedule.Schedule{Name: "a", Rule: every(t, time.Hour), Command: []string{"sh", "-c", "env | grep -e WINDROW -e FROM | sort; pwd"}})
	f.ago("a", time.Second)
	s := f.schedulerOn(f.Store, schedule.Options{Env: []string{"WINDROW_DATABASE_URL=/the/file"}})
	_, err := s.Tick(t.Context())
	check(t, err)
	got := f.run(run.ID)
	here, err := os.Getwd()
	check(t, err)
	want := fmt.Sprintf("FROM_OUTSIDE=yes\nWINDROW_DATABASE_URL=/the/file\nWINDROW_RUN_DUE_AT=%s\nWINDROW_RUN_ID=%d\nWINDROW_RUN_ON_DEMAND=false\nWINDROW_RUN_SCHEDULE=a\n%s\n",
		got.DueAt.Format(time.RFC3339Nano), run.ID, here)
	equal(t, "output", got.Output, want)
}

// lifeline is a named pipe that processes hold open: whoever reads it learns that they
// have started, by a line, and that the last of them is gone, by the end of the file.
type lifeline struct{ path string }

func newLifeline(t *testing.T) lifeline {
	t.Helper()
	path := t.TempDir() + "/lifeline"
	check(t, syscall.Mkfifo(path, 0o600))
	return lifeline{path: path}
}

// group is a command that holds the pipe with several processes, none of which heeds
// SIGTERM.
func (l lifeline) group() []string {
	return []string{"sh", "-c", fmt.Sprintf("exec 3>'%s'; trap '' TERM; echo begun; echo started >&3; sleep 1000 & sleep 1000; sleep 1000", l.path)}
}

// watch calls started after the first line, and returns when all are gone.
func (l lifeline) watch(t *testing.T, started func()) {
	t.Helper()
	pipe, err := os.Open(l.path)
	check(t, err)
	defer pipe.Close()
	check(t, pipe.SetReadDeadline(time.Now().Add(patience)))
	reader := bufio.NewReader(pipe)
	_, err = reader.ReadString('\n')
	check(t, err)
	started()
	if _, err := io.Copy(io.Discard, reader); err != nil {
		t.Errorf("somebody is left: %v", err)
	}
}

func TestTimeoutEndsTheWholeGroup(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		life := newLifeline(t)
		run := f.add(schedule.Schedule{Name: "a", Rule: every(t, time.Hour), Timeout: 500 * time.Millisecond, Command: life.group()})
		f.ago("a", time.Second)
		ended := make(chan schedule.Ticked, 1)
		go func() { ended <- f.tick(noop) }()
		life.watch(t, func() {})
		equal(t, "ticked", await(t, "the tick", ended), schedule.Ticked{Started: 1, Failed: 1})
		got := f.run(run.ID)
		equal(t, "state", got.State, schedule.Failed)
		equal(t, "error", got.Error, "timed out after 500ms")
		equal(t, "output", got.Output, "begun\n")
	})
}

func TestCancelEndsTheWholeGroup(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		life := newLifeline(t)
		run := f.add(schedule.Schedule{Name: "a", Rule: every(t, time.Hour), Command: life.group()})
		f.ago("a", time.Second)
		serve(t, f.schedulerOn(f.open(), schedule.Options{}))
		life.watch(t, func() {
			asked, err := f.Cancel(t.Context(), run.ID, "somebody")
			check(t, err)
			equal(t, "state", asked.State, schedule.Running)
		})
		got := f.awaitState(run.ID, schedule.Cancelled)
		equal(t, "cancelled by", got.Cancelled, "somebody")
		equal(t, "error", got.Error, "cancelled by somebody")
		if f.get("a").Next == nil {
			t.Error("the schedule has ended")
		}
	})
}

func TestCommandsThatCanNotBeStartedFail(t *testing.T) {
	f := onSQLite(t, nil)
	script := t.TempDir() + "/script"
	check(t, os.WriteFile(script, []byte("echo no first line\n"), 0o755))
	for i, tt := range []struct{ program, want string }{
		{"no-such-program-anywhere", "start no-such-program-anywhere"},
		{t.TempDir(), "start /"},
		{script, "#!/bin/sh"},
	} {
		name := fmt.Sprint("s", i)
		run := f.add(schedule.Schedule{Name: name, Rule: every(t, time.Hour), Command: []string{tt.program}})
		f.ago(name, time.Second)
		equal(t, "failed", f.tick(noop).Failed, 1)
		if got := f.run(run.ID); got.State != schedule.Failed || got.ExitStatus != nil || !strings.Contains(got.Error, tt.want) {
			t.Errorf("%s: %s, %q", tt.program, got.State, got.Error)
		}
	}
}

func TestTheEndOfALongOutputIsKept(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		run := f.add(schedule.Schedule{Name: "a", Rule: every(t, time.Hour), Command: []string{"sh", "-c",
			`printf 'first\000\377\n'; i=0; while [ $i -lt 3000 ]; do echo "line $i, with ü and more of this and that"; i=$((i+1)); done; echo last`}})
		f.ago("a", time.Second)
		f.tick(noop)
		got := f.run(run.ID).Output
		if len(got) > 65<<10 || len(got) < 63<<10 || !strings.HasPrefix(got, "[the end of ") || !strings.HasSuffix(got, "line 2999, with ü and more of this and that\nlast\n") {
			t.Errorf("%d bytes: %.50q … %q", len(got), got, got[len(got)-50:])
		}
		short := f.add(schedule.Schedule{Name: "b", Rule: every(t, time.Hour), Command: []string{"printf", `a\000b\377c`}})
		f.ago("b", time.Second)
		f.tick(noop)
		equal(t, "made safe", f.run(short.ID).Output, "a\uFFFDb\uFFFDc")
		time := f.add(schedule.Schedule{Name: "c", Rule: every(t, time.Hour), Command: []string{"printf", "2026-11-30 08:00:00"}})
		f.ago("c", 0)
		f.tick(noop)
		equal(t, "what looks like a time", f.run(time.ID).Output, "2026-11-30 08:00:00")
	})
}

func TestAPanicFailsItsRunAlone(t *testing.T) {
	f := onSQLite(t, nil)
	run := f.every("a", time.Hour)
	f.ago("a", time.Second)
	ticked := f.tick(func(context.Context, schedule.Run, io.Writer) error { panic("boom") })
	equal(t, "ticked", ticked, schedule.Ticked{Started: 1, Failed: 1})
	equal(t, "error", f.run(run.ID).Error, "panic: boom")
}

func TestAStopLetsRunsEndWithinTheGracePeriod(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		run := f.every("a", time.Hour)
		f.ago("a", time.Second)
		started, end := make(chan struct{}), make(chan struct{})
		stop := serve(t, f.schedulerOn(f.open(), schedule.Options{Functions: map[string]schedule.Function{
			"f": func(context.Context, schedule.Run, io.Writer) error { close(started); <-end; return nil },
		}}))
		await(t, "the run", started)
		stopped := make(chan error, 1)
		go func() { stopped <- stop() }()
		f.runNow("a")
		close(end)
		check(t, await(t, "the stop", stopped))
		equal(t, "state", f.run(run.ID).State, schedule.Done)
		equal(t, "asked for after the stop", f.count(`state = 'waiting' AND on_demand`), 1)
	})
}

func TestAfterTheGracePeriodRunsAreToldToStop(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		run := f.every("a", time.Hour)
		f.ago("a", time.Second)
		function := newStay()
		stop := serve(t, f.schedulerOn(f.open(), schedule.Options{Grace: 50 * time.Millisecond, Functions: map[string]schedule.Function{"f": function.run}}))
		await(t, "the run", function.started)
		check(t, stop())
		if cause := await(t, "the cause", function.stopped); !errors.Is(cause, schedule.ErrStopped) {
			t.Errorf("the cause is %v", cause)
		}
		equal(t, "state", f.run(run.ID).State, schedule.Failed)
		equal(t, "error", f.run(run.ID).Error, "the scheduler was stopped")
		equal(t, "the lock is free", f.get("a").Occupant == nil, true)
	})
}
