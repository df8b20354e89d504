package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/windrow-go/windrow/internal/metrics"
	"github.com/windrow-go/windrow/model"
	"github.com/windrow-go/windrow/processor"
)

type handle = processor.HandlerFunc

func TestCountersAgreeWithTheRows(t *testing.T) {
	onEachEngine(t, func(t *testing.T, j *job) {
		const rows = 60
		j.load(rows)
		mixed := handle(func(_ context.Context, row model.Dataset) (any, error) {
			switch {
			case row.ID%10 == 0:
				return nil, processor.Permanent(errors.New("hopeless"))
			case row.ID%7 == 0 && row.Attempts == 1:
				return nil, errors.New("not yet")
			case row.ID == 1 && row.Attempts == 1:
				panic("at the first try")
			}
			return model.Answer{Result: row.ID, Cost: 0.5}, nil
		})
		opts := processor.Options{Concurrency: 2, UntilEmpty: true, RetryMin: time.Millisecond, RetryMax: time.Millisecond}
		check(t, j.work(t.Context(), mixed, opts)())

		s := j.scrape()
		equal(t, "tries", j.query("sum(checkouts)", "true"), rows+9) // ids 7 to 56 by seven, and 1
		s.wants(t, map[string]float64{
			"windrow_rows_checked_out_total":                                 j.query("sum(checkouts)", "true"),
			`windrow_rows_total{outcome="done"}`:                             j.query("count(*)", "is_processed AND error IS NULL"),
			`windrow_rows_total{outcome="failed"}`:                           j.query("count(*)", "is_processed AND error IS NOT NULL"),
			`windrow_rows_total{outcome="retried"}`:                          j.query("sum(attempts - 1)", "true"),
			`windrow_rows_total{outcome="released"}`:                         0,
			`windrow_rows_total{outcome="lost"}`:                             0,
			`windrow_rows_held{state="buffered"}`:                            0,
			`windrow_rows_held{state="running"}`:                             0,
			`windrow_rows_held{state="finished"}`:                            0,
			"windrow_leases_at_risk":                                         0,
			"windrow_handler_trouble":                                        0,
			"windrow_handlers_stuck":                                         0,
			"windrow_handler_cost_total":                                     0.5 * j.query("count(*)", "is_processed AND error IS NULL"),
			handlerCalls("ok"):                                               j.query("count(*)", "is_processed AND error IS NULL"),
			handlerCalls("permanent"):                                        j.query("count(*)", "is_processed AND error IS NOT NULL"),
			handlerCalls("error"):                                            8,
			handlerCalls("panic"):                                            1,
			databaseCalls("check_in", "error"):                               0,
			`windrow_conflicts_total{op="check_out",reason="serialization"}`: 0,
		})
		for _, op := range []string{"check_out", "check_in"} {
			if s[databaseCalls(op, "ok")] == 0 {
				t.Errorf("no %s was timed", op)
			}
		}
		for _, name := range []string{"go_goroutines", "process_resident_memory_bytes"} {
			if s[name] == 0 {
				t.Errorf("%s is missing", name)
			}
		}
		if s.sum("go_sql_open_connections") == 0 {
			t.Error("the connections are not watched")
		}
	})
}

func handlerCalls(outcome string) string {
	return fmt.Sprintf("windrow_handler_duration_seconds_count{outcome=%q}", outcome)
}

func databaseCalls(op, result string) string {
	return fmt.Sprintf("windrow_database_call_duration_seconds_count{op=%q,result=%q}", op, result)
}

func TestGaugesShowWhatIsInHand(t *testing.T) {
	j := onSQLite(t)
	j.load(2)
	began, let := make(chan struct{}), make(chan struct{})
	wait := j.work(t.Context(), handle(func(context.Context, model.Dataset) (any, error) {
		began <- struct{}{}
		<-let
		return nil, nil
	}), processor.Options{Concurrency: 2, UntilEmpty: true})
	<-began
	<-began
	j.scrape().wants(t, map[string]float64{
		`windrow_rows_held{state="running"}`:  2,
		`windrow_rows_held{state="buffered"}`: 0,
		`windrow_rows_total{outcome="done"}`:  0,
		"windrow_rows_checked_out_total":      2,
		handlerCalls("ok"):                    0,
	})
	close(let)
	check(t, wait())
}

func TestAHandlerThatCanNotServeIsShown(t *testing.T) {
	j := onSQLite(t)
	j.load(5)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wait := j.work(ctx, handle(func(context.Context, model.Dataset) (any, error) {
		return nil, processor.Unavailable(errors.New("come back later"))
	}), processor.Options{Concurrency: 1})
	eventually(t, "the worker is slowed down", func() bool { return j.scrape()["windrow_handler_trouble"] == 1 })
	if j.scrape()[handlerCalls("unavailable")] == 0 {
		t.Error("no call is counted as unavailable")
	}
	cancel()
	check(t, wait())
}

// failCommits makes the next k COMMITs of transactions that update datasets fail with
// 40001: a deferred trigger raises it, and counts in a sequence, which no rollback
// undoes.
func (j *job) failCommits(k int) {
	j.t.Helper()
	j.exec(`CREATE SEQUENCE failures`,
		fmt.Sprintf(`CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN
				IF nextval('failures') <= %d THEN
					RAISE EXCEPTION 'made by the test' USING ERRCODE = '40001';
				END IF;
				RETURN NULL;
			END $$`, k),
		`CREATE CONSTRAINT TRIGGER fail AFTER UPDATE ON windrow.datasets
			DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail()`)
}

func TestConflictsAreCountedByWhatTheyMet(t *testing.T) {
	j := onPostgres(t, postgresURL(t))
	j.load(10)
	j.failCommits(3)
	check(t, j.work(t.Context(), handle(func(context.Context, model.Dataset) (any, error) { return 1, nil }),
		processor.Options{Concurrency: 1, UntilEmpty: true})())
	s := j.scrape()
	equal(t, "conflicts", s.sum("windrow_conflicts_total", `reason="serialization"`), 3)
	equal(t, "conflicts of check-outs", s[`windrow_conflicts_total{op="check_out",reason="serialization"}`], 3)
	equal(t, "conflicts in all", s.sum("windrow_conflicts_total"), 3)
	equal(t, "rows done", s[`windrow_rows_total{outcome="done"}`], 10)
}

func TestALostClaimAndARefusedResultAreCounted(t *testing.T) {
	j := onPostgres(t, postgresURL(t))
	j.load(2)
	j.exec(`ALTER TABLE windrow.datasets ADD CHECK (10 / (length(result::text) - 7) < 100)`) // by zero, for "seven"
	check(t, j.work(t.Context(), handle(func(ctx context.Context, row model.Dataset) (any, error) {
		if row.ID == 1 && row.Checkouts == 1 { // somebody else takes it, and gives it back
			j.exec(`UPDATE windrow.datasets SET checkouts = checkouts + 1, checked_out_by = NULL, available_at = 'epoch' WHERE id = 1`)
		}
		if row.ID == 2 {
			return "seven", nil
		}
		return nil, nil
	}), processor.Options{Concurrency: 1, UntilEmpty: true})())
	s := j.scrape()
	s.wants(t, map[string]float64{
		`windrow_rows_total{outcome="lost"}`:   1,
		`windrow_rows_total{outcome="done"}`:   1,
		`windrow_rows_total{outcome="failed"}`: 1,
		databaseCalls("check_in", "error"):     0,
	})
	if s[databaseCalls("check_in", "refused")] == 0 {
		t.Error("no check-in is counted as refused")
	}
}

// A metrics.Worker that is nil is what a command has that is not watched.
func TestNothingIsWrappedWhereNothingIsMeasured(t *testing.T) {
	j := onSQLite(t)
	var none *metrics.Worker
	h := handle(func(context.Context, model.Dataset) (any, error) { return nil, nil })
	if _, same := none.Handler(h).(handle); !same || none.Store(j.store) != processor.Store(j.store) {
		t.Error("something was wrapped")
	}
	none.Conflict("check out", "serialization")
	none.Doing("something")
	none.Database("sqlite", j.store, error.Error)
	none.Working(t.Context(), nil, 0)()
}
