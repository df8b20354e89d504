package checkout_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/model"
)

// strangerVariable makes the test program play a worker in another time zone: it
// holds the engine, a space, and the database to work on.
const strangerVariable = "CHECKOUT_TEST_STRANGER"

// seen is what the stranger says of the rows afterwards, in the order of ids.
type seen struct {
	Zone   string
	Rows   []model.Dataset
	States []model.State
	Now    time.Time
	Agenda model.Agenda
	Due    int // rows handed out that had come due
}

// playStranger releases the first of five rows, has the second retried in an
// hour, the third done, keeps the fourth, and lets the fifth be what it is: due.
func playStranger() int {
	var engine, url string
	_, err := fmt.Sscan(os.Getenv(strangerVariable), &engine, &url)
	if err == nil {
		err = strangerWorks(context.Background(), engine, url)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func strangerWorks(ctx context.Context, engine, url string) error {
	var s store
	var err error
	if engine == "postgres" {
		s, err = checkout.OpenPostgres(ctx, url, checkout.Options{})
	} else {
		s, err = checkout.OpenSQLite(ctx, url, false, checkout.Options{})
	}
	if err != nil {
		return err
	}
	defer s.Close()
	out := seen{Zone: time.Local.String()}
	claims, err := s.CheckOutKeys(ctx, "stranger", lease, []int64{1, 2, 3, 4})
	if err != nil || len(claims) != 4 {
		return fmt.Errorf("%d claims: %w", len(claims), err)
	}
	if err := s.Release(ctx, []model.Ticket{claims[0].Ticket()}); err != nil {
		return err
	}
	if _, err := s.CheckIn(ctx, []model.CheckIn{retry(claims[1], time.Hour, "x"), done(claims[2], `1`)}); err != nil {
		return err
	}
	for range 5 { // fresh and due rows take turns
		got, err := s.CheckOut(ctx, "stranger", 2*time.Hour, 1)
		if err != nil {
			return err
		}
		for _, c := range got {
			if c.ID == 5 {
				out.Due++
			} else if err := s.Release(ctx, []model.Ticket{c.Ticket()}); err != nil {
				return err
			}
		}
	}
	for id := int64(1); id <= 5; id++ {
		row, now, err := s.ByID(ctx, id)
		if err != nil {
			return err
		}
		out.Rows, out.States, out.Now = append(out.Rows, row), append(out.States, row.State(now)), now
	}
	if out.Agenda, err = s.Agenda(ctx); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

// Server, session and client each keep another time, none of them whole hours
// from the others; on SQLite there is only the client's.
func TestTimeZonesMakeNoDifference(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		f.add(5)
		url := f.url
		if f.engine == "postgres" {
			var name string
			check(t, f.raw.Raw(`SELECT current_database()`).Scan(&name).Error)
			check(t, f.raw.Exec(`ALTER DATABASE "`+name+`" SET timezone = 'America/St_Johns'`).Error)
			check(t, f.raw.Exec(`UPDATE windrow.datasets SET available_at = clock_timestamp() - interval '1 second' WHERE id = 5`).Error)
			url += "&timezone=Asia/Kathmandu"
		} else {
			check(t, f.raw.Exec(`UPDATE datasets SET available_at = (unixepoch() - 1) * 1000000 WHERE id = 5`).Error)
		}
		self, err := os.Executable()
		check(t, err)
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), "TZ=Pacific/Chatham", strangerVariable+"="+f.engine+" "+url)
		cmd.Stderr = t.Output()
		text, err := cmd.Output()
		check(t, err)
		var out seen
		check(t, json.Unmarshal(text, &out))

		equal(t, "due rows handed out", out.Due, 1)
		for i, want := range []model.State{model.Fresh, model.Waiting, model.Done, model.InFlight, model.InFlight} {
			equal(t, fmt.Sprintf("state of row %d, as the stranger sees it", i+1), out.States[i], want)
			f.wantState(int64(i+1), want)
			ours, theirs := f.row(int64(i+1)), out.Rows[i]
			equal(t, "available_at is the same instant", ours.AvailableAt.Equal(theirs.AvailableAt), true)
			equal(t, "last_checkout is the same instant", ours.LastCheckout.Equal(theirs.LastCheckout), true)
			for _, at := range []time.Time{theirs.AvailableAt, theirs.LastCheckout, out.Now} {
				equal(t, "zone of an instant", at.Location().String(), "UTC")
			}
		}
		equal(t, "a released row's vesting time is the sentinel", f.row(1).AvailableAt.Equal(model.Sentinel), true)
		about(t, "the retry", time.Until(f.row(2).AvailableAt), time.Hour)
		about(t, "the lease", time.Until(f.row(4).AvailableAt), lease)
		about(t, "the long lease", time.Until(f.row(5).AvailableAt), 2*time.Hour)
		about(t, "the check-out", time.Until(f.row(4).LastCheckout), 0)
		about(t, "the check-in", time.Until(*f.row(3).ProcessedAt), 0)
		about(t, "the stranger's clock", time.Until(out.Now), 0)
		equal(t, "open", out.Agenda.Open, true)
		equal(t, "next", out.Agenda.Next, 0)
	})
}

// about allows for a slow machine, and for less than any two time zones differ.
func about(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	if (got - want).Abs() > 5*time.Minute {
		t.Fatalf("%s is in %v, want %v", what, got, want)
	}
}
