package checkout_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/faultproxy"
	"github.com/windrow-go/windrow/internal/pgcluster"
	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
	"github.com/windrow-go/windrow/model"
)

// An answer that is lost at COMMIT leaves the worker in doubt; it asks again, and
// the batch is stored once, whatever had become of the first.
func TestACheckInCutAtItsCommitIsStoredOnce(t *testing.T) {
	tests := map[string]struct {
		when         faultproxy.When
		wantReplayed int
	}{
		"before the server sees it":    {faultproxy.BeforeForward, 0},
		"after the server has done it": {faultproxy.AfterReply, 4},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := onPostgres(t, checkout.Options{})
			proxy, through := pgtest.Proxy(t, f.url)
			direct := *f
			f.url = through
			f.store = f.open()
			ids := direct.add(4)
			claims, err := f.CheckOutKeys(t.Context(), "a", lease, ids)
			check(t, err)
			batch := []model.CheckIn{
				done(claims[0], `{"n": 1}`), failed(claims[1], "bad"), retry(claims[2], 0, "again"),
				{Ticket: claims[3].Ticket(), Outcome: model.Outcome{Verdict: model.VerdictUnavailable, Delay: time.Hour}},
			}

			proxy.CutAtCommit(1, tt.when, "unnest")
			_, err = f.CheckIn(t.Context(), batch)
			if !errors.Is(err, model.ErrUnavailable) {
				t.Fatalf("got %v, want ErrUnavailable", err)
			}
			equal(t, "cuts", proxy.Cuts(), 1)
			direct.wantState(ids[0], map[int]model.State{0: model.InFlight, 4: model.Done}[tt.wantReplayed])

			receipt := f.checkIn(batch...)
			equal(t, "lost", len(receipt.Lost), 0)
			equal(t, "replayed", receipt.Replayed, tt.wantReplayed)
			for i, want := range []model.State{model.Done, model.Failed, model.Fresh, model.Waiting} {
				direct.wantState(ids[i], want)
				row := direct.row(ids[i])
				equal(t, "checkouts", row.Checkouts, 1)
				equal(t, "attempts", row.Attempts, map[bool]int32{true: 0, false: 1}[i == 3])
			}
			equal(t, "result", string(direct.row(ids[0]).Result), `{"n": 1}`)
		})
	}
}

// A check-out that was committed without its worker hearing of it is a claim
// that nobody works on: it must come back by its lease, and as a loss.
func TestACheckOutCutAtItsCommit(t *testing.T) {
	for name, when := range map[string]faultproxy.When{
		"before the server sees it": faultproxy.BeforeForward, "after the server has done it": faultproxy.AfterReply,
	} {
		t.Run(name, func(t *testing.T) {
			f := onPostgres(t, checkout.Options{})
			id := f.add(1)[0]
			proxy, through := pgtest.Proxy(t, f.url)
			worker := *f
			worker.url = through
			s := worker.open()
			proxy.CutAtCommit(1, when, "checkouts + 1")
			_, err := s.CheckOutKeys(t.Context(), "a", lease, []int64{id})
			if !errors.Is(err, model.ErrUnavailable) {
				t.Fatalf("got %v, want ErrUnavailable", err)
			}
			lost := map[faultproxy.When]int32{faultproxy.BeforeForward: 0, faultproxy.AfterReply: 1}[when]
			f.expire()
			claims := f.checkOut(s, "a", 1)
			equal(t, "claims", len(claims), 1)
			equal(t, "losses", claims[0].Losses, lost)
			equal(t, "token", claims[0].Checkouts, 1+lost)
		})
	}
}

func TestAStoreOutlivesARestartOfItsServer(t *testing.T) {
	cluster := pgtest.Cluster(t, pgcluster.Options{})
	check(t, cluster.CreateDatabase(t.Context(), "job", ""))
	f := postgresAt(t, cluster.URL("job"), checkout.Options{})
	ids := f.add(3)
	claims, err := f.CheckOutKeys(t.Context(), "a", lease, ids)
	check(t, err)

	stop := map[string]func() error{
		"a crash":    cluster.Kill,
		"a shutdown": func() error { return cluster.StopFast(t.Context()) },
	}
	for name, end := range stop {
		check(t, end())
		for what, call := range map[string]func() error{
			"check out": func() error { _, err := f.CheckOut(t.Context(), "a", lease, 1); return err },
			"check in":  func() error { _, err := f.CheckIn(t.Context(), []model.CheckIn{done(claims[0], `1`)}); return err },
			"renew":     func() error { _, err := f.Renew(t.Context(), lease, ticketsOf(claims)); return err },
			"release":   func() error { return f.Release(t.Context(), ticketsOf(claims)) },
			"agenda":    func() error { _, err := f.Agenda(t.Context()); return err },
			"wait":      func() error { return f.Wait(t.Context(), 2*time.Second) },
			"ping":      func() error { return f.Ping(t.Context()) },
			"counts":    func() error { _, err := f.Counts(t.Context()); return err },
			"reprocess": func() error {
				_, err := f.Reprocess(t.Context(), checkout.Selection{All: true}, checkout.ReprocessOptions{By: "me"})
				return err
			},
			"export": func() error {
				return f.Export(t.Context(), checkout.ExportOptions{}, func(checkout.Finished) error { return nil })
			},
			"load": func() error { _, err := f.BeginLoad(t.Context(), time.Now().String(), 0); return err },
			"open": func() error { _, err := checkout.OpenPostgres(t.Context(), f.url, f.opts); return err },
		} {
			if err := call(); !errors.Is(err, model.ErrUnavailable) {
				t.Errorf("%s after %s: got %v, want ErrUnavailable", what, name, err)
			}
		}
		check(t, cluster.Restart(t.Context()))
		lost, err := f.Renew(t.Context(), lease, ticketsOf(claims))
		check(t, err)
		equal(t, "claims lost", len(lost), 0)
	}
	equal(t, "lost", len(f.checkIn(done(claims[0], `1`), done(claims[1], `2`), done(claims[2], `3`)).Lost), 0)
	for _, id := range ids {
		f.wantState(id, model.Done)
	}
}

func ticketsOf(claims []model.Claim) []model.Ticket {
	tickets := make([]model.Ticket, len(claims))
	for i, c := range claims {
		tickets[i] = c.Ticket()
	}
	return tickets
}

// A server that was full, or is starting, is no reason to end either.
func TestAServerWithoutRoomIsUnavailable(t *testing.T) {
	cluster := pgtest.Cluster(t, pgcluster.Options{Settings: map[string]string{
		"max_connections": "6", "superuser_reserved_connections": "0", "max_wal_senders": "0"}})
	check(t, cluster.CreateDatabase(t.Context(), "job", ""))
	f := postgresAt(t, cluster.URL("job"), checkout.Options{})
	f.add(1)
	pool, err := f.raw.DB()
	check(t, err)
	for range 6 { // takes what is left
		conn, err := pool.Conn(t.Context())
		if err != nil {
			break
		}
		defer conn.Close()
	}
	_, err = checkout.OpenPostgres(t.Context(), f.url, f.opts)
	if !errors.Is(err, model.ErrUnavailable) || !strings.Contains(err.Error(), "53300") {
		t.Fatalf("got %v, want ErrUnavailable for too many connections", err)
	}
	equal(t, "rows for who is connected already", len(f.checkOut(f.store, "a", 1)), 1)
}
