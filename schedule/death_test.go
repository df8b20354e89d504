package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/windrow-go/windrow/internal/faultproxy"
	"github.com/windrow-go/windrow/internal/pgcluster"
	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
	"github.com/windrow-go/windrow/schedule"
)

// pair adds two schedules that have one lock: "first", due now, with a command that
// outlasts the test, and "second", that runs a function.
func (f *fixture) pair(command ...string) (first, second schedule.Run) {
	f.t.Helper()
	first = f.add(schedule.Schedule{Name: "first", Rule: every(f.t, time.Hour), Lock: "group", Command: command})
	second = f.add(schedule.Schedule{Name: "second", Rule: every(f.t, time.Hour), Lock: "group"})
	f.ago("first", time.Second)
	return first, second
}

// wantTakenOver waits until the second of a pair was run by a scheduler, and checks
// what became of the first.
func (f *fixture) wantTakenOver(first, second schedule.Run) {
	f.t.Helper()
	f.awaitState(second.ID, schedule.Done)
	got := f.run(first.ID)
	equal(f.t, "the first", got.State, schedule.Abandoned)
	if got.Abandoned == "" || got.Abandoned == got.Holder || got.FinishedAt == nil {
		f.t.Errorf("abandoned by %q at %v, held by %q", got.Abandoned, got.FinishedAt, got.Holder)
	}
	if next := f.get("first").Next; next == nil {
		f.t.Error("its schedule has ended")
	}
}

func TestTheLockOfAKilledHolderIsFreeAndTheNextRunStarts(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		life := newLifeline(t)
		first, second := f.pair("sh", "-c", fmt.Sprintf("exec 3>'%s'; echo started >&3; exec sleep 1000", life.path))
		holder := daemon(t, f.url)
		life.watch(t, func() {
			serve(t, f.schedulerOn(f.open(), schedule.Options{Lease: shortLease, Functions: map[string]schedule.Function{"f": noop}}))
			f.ago("second", time.Second)
			check(t, holder.Process.Kill())
		})
		f.wantTakenOver(first, second)
	})
}

func TestARunIsToldToStopWhenItsConnectionIsCutAndTheNextStarts(t *testing.T) {
	t.Parallel()
	f := onPostgres(t, nil)
	proxy, through := pgtest.Proxy(t, f.url)
	first, second := f.pair("sleep", "1000")
	f.exec(`UPDATE {schedules} SET command = NULL, function = 'g' WHERE name = 'first'`)
	function := newStay()
	stop := serve(t, f.schedulerOn(f.openAt(through), schedule.Options{Grace: -1, Functions: map[string]schedule.Function{"g": function.run}}))
	await(t, "the run", function.started)
	f.ago("second", time.Second)
	equal(t, "held", f.tick(noop), schedule.Ticked{Blocked: 1})
	proxy.Refuse(true)
	proxy.CutAll()
	if cause := await(t, "the cause", function.stopped); !errors.Is(cause, schedule.ErrLockLost) {
		t.Errorf("the cause is %v", cause)
	}
	eventually(t, "the second has run", func() bool { f.tick(noop); return f.run(second.ID).State == schedule.Done })
	f.wantTakenOver(first, second)
	proxy.Refuse(false)
	check(t, stop())
	equal(t, "the first, still", f.run(first.ID).State, schedule.Abandoned)
}

// A network that vanishes without a word: the holder has to find out by itself, and
// before the server gives its session up.
func TestARunIsToldToStopWhenTheNetworkVanishes(t *testing.T) {
	t.Parallel()
	f := onPostgres(t, nil)
	proxy, through := pgtest.Proxy(t, f.url)
	f.every("a", time.Hour)
	f.ago("a", time.Second)
	function := newStay()
	serve(t, f.schedulerOn(f.openAt(through), schedule.Options{Grace: -1, Functions: map[string]schedule.Function{"f": function.run}}))
	await(t, "the run", function.started)
	proxy.HalfOpen(true)
	began := time.Now()
	cause := await(t, "the cause", function.stopped)
	if took := time.Since(began); !errors.Is(cause, schedule.ErrLockLost) || took > 15*time.Second {
		t.Errorf("told after %s: %v", took, cause)
	}
	proxy.HalfOpen(false)
	proxy.CutAll()
}

func TestAfterTheServersRestartTheLockIsFreeAndTheScheduleGoesOn(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Cluster(t, pgcluster.Options{})
	check(t, cluster.CreateDatabase(t.Context(), "job", ""))
	migrate(t, cluster.URL("job"))
	f := openedAt(t, cluster.URL("job"), nil)
	run := f.every("a", time.Hour)
	f.ago("a", time.Second)
	function := newStay()
	serve(t, f.schedulerOn(f.open(), schedule.Options{Grace: -1, Functions: map[string]schedule.Function{"f": function.run}}))
	await(t, "the run", function.started)
	check(t, cluster.Kill())
	if cause := await(t, "the cause", function.stopped); !errors.Is(cause, schedule.ErrLockLost) {
		t.Errorf("the cause is %v", cause)
	}
	check(t, cluster.Restart(t.Context()))
	var got schedule.Run
	eventually(t, "the server answers", func() bool { _, err := f.Run(t.Context(), run.ID); return err == nil })
	got = f.awaitState(run.ID, schedule.Abandoned)
	equal(t, "abandoned by", got.Abandoned, got.Holder)
	f.runNow("a")
	await(t, "the next run", function.started)
}

// Behind a pooler a session can't hold a lock. Schedulers there and elsewhere respect
// each other nevertheless.
func TestBehindAPoolerALeaseIsTheLock(t *testing.T) {
	t.Parallel()
	f := onPostgres(t, nil)
	var name string
	check(t, f.raw.Raw(`SELECT current_database()`).Scan(&name).Error)
	pooled := pgtest.Pooler(t, pgtest.Shared(t)).URL(name) + "&default_query_exec_mode=exec"
	store := f.openAt(pooled)
	function := newStay()
	functions := map[string]schedule.Function{"f": function.run}
	for _, name := range []string{"a", "b"} {
		f.add(schedule.Schedule{Name: name, Rule: every(t, time.Hour), Lock: "group"})
	}
	leased := func() int { return f.count(`state = 'running' AND lease_until > clock_timestamp()`) }

	stop := serve(t, f.schedulerOn(store, schedule.Options{Lease: shortLease, Grace: -1, Functions: functions}))
	f.ago("a", time.Second)
	await(t, "a run behind the pooler", function.started)
	equal(t, "leases", leased(), 1)
	f.ago("b", time.Second)
	equal(t, "past the pooler", f.tick(noop), schedule.Ticked{Blocked: 1})
	time.Sleep(shortLease + time.Second/2) // what has to happen in this time is nothing
	equal(t, "past the pooler, later", f.tick(noop), schedule.Ticked{Blocked: 1})
	equal(t, "leases, renewed", leased(), 1)
	check(t, stop())
	await(t, "the stop", function.stopped)

	stop = serve(t, f.schedulerOn(f.open(), schedule.Options{Grace: -1, Functions: functions}))
	await(t, "a run past the pooler", function.started)
	equal(t, "leases", leased(), 0)
	f.runNow("a")
	ticked, err := f.schedulerOn(store, schedule.Options{Functions: map[string]schedule.Function{"f": noop}}).Tick(t.Context())
	check(t, err)
	equal(t, "behind the pooler", ticked, schedule.Ticked{Blocked: 1})
	check(t, stop())
	await(t, "the stop", function.stopped)
}

func TestTheLeaseOfAHolderThatIsKilledBehindAPoolerRunsOut(t *testing.T) {
	t.Parallel()
	f := onPostgres(t, nil)
	var name string
	check(t, f.raw.Raw(`SELECT current_database()`).Scan(&name).Error)
	pooled := pgtest.Pooler(t, pgtest.Shared(t)).URL(name) + "&default_query_exec_mode=exec"
	life := newLifeline(t)
	first, second := f.pair("sh", "-c", fmt.Sprintf("exec 3>'%s'; echo started >&3; exec sleep 1000", life.path))
	holder := daemon(t, pooled)
	life.watch(t, func() {
		check(t, holder.Process.Kill())
		f.ago("second", time.Second)
	})
	equal(t, "while the lease lasts", f.tick(noop), schedule.Ticked{Blocked: 1})
	serve(t, f.schedulerOn(f.open(), schedule.Options{Lease: shortLease, Functions: map[string]schedule.Function{"f": noop}}))
	f.wantTakenOver(first, second)
}

// The server has started the run, but its holder does not get to know.
func TestARunWhoseStartWasNotAnsweredIsAbandonedAndTheScheduleGoesOn(t *testing.T) {
	t.Parallel()
	f := onPostgres(t, nil)
	proxy, through := pgtest.Proxy(t, f.url)
	run := f.every("a", time.Hour)
	f.ago("a", time.Second)
	proxy.CutAtCommit(1, faultproxy.AfterReply, "state = 'running',")
	started := make(chan schedule.Run, 10)
	serve(t, f.schedulerOn(f.openAt(through), schedule.Options{Functions: map[string]schedule.Function{
		"f": func(_ context.Context, run schedule.Run, _ io.Writer) error { started <- run; return nil },
	}}))
	f.awaitState(run.ID, schedule.Abandoned)
	equal(t, "cuts", proxy.Cuts(), 1)
	asked := f.runNow("a")
	equal(t, "the next", await(t, "the next run", started).ID, asked.ID)
	equal(t, "the schedule goes on", f.get("a").Next != nil, true)
}

// Between taking the lock and starting the run, and between the run's end and giving
// the lock back, only the session has it.
func TestALockThatASessionHasIsRespectedAlsoWithoutARun(t *testing.T) {
	t.Parallel()
	f := onPostgres(t, nil)
	var name string
	check(t, f.raw.Raw(`SELECT current_database()`).Scan(&name).Error)
	store := f.openAt(pgtest.Pooler(t, pgtest.Shared(t)).URL(name) + "&default_query_exec_mode=exec")
	f.every("a", time.Hour)
	var key int64
	f.runNow("a")
	equal(t, "ticked", f.tick(func(context.Context, schedule.Run, io.Writer) error {
		return f.raw.Raw(`SELECT (CAST(classid AS bigint) << 32) | CAST(objid AS bigint) FROM pg_locks
			WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&key).Error
	}), schedule.Ticked{Started: 1})
	pool, err := f.raw.DB()
	check(t, err)
	conn, err := pool.Conn(t.Context())
	check(t, err)
	defer conn.Close()
	var taken bool
	check(t, conn.QueryRowContext(t.Context(), `SELECT pg_try_advisory_lock($1)`, key).Scan(&taken))
	equal(t, "it was given back", taken, true)
	f.runNow("a")
	for what, s := range map[string]schedule.Store{"past the pooler": f.Store, "behind the pooler": store} {
		ticked, err := f.schedulerOn(s, schedule.Options{Functions: map[string]schedule.Function{"f": noop}}).Tick(t.Context())
		check(t, err)
		equal(t, what, ticked, schedule.Ticked{Blocked: 1})
	}
	_, err = conn.ExecContext(t.Context(), `SELECT pg_advisory_unlock($1)`, key)
	check(t, err)
	equal(t, "free", f.tick(noop), schedule.Ticked{Started: 1})
}
