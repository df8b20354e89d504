package checkout_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/model"
)

// game plays random moves of several workers on one table, each through a store
// of its own, and compares the table with an oracle after every move.
type game struct {
	f       *fixture
	stores  map[string]store
	holders []string
	ids     []int64
	keys    []string
	oracle  oracle
	tickets map[string][]model.Ticket // all that a holder has been given, stale ones too
	results int                       // no two outcomes are alike
	moves   int
}

// TestRandomMoves: on failure rapid says the seed, and the shortest sequence of
// moves that it finds.
func TestRandomMoves(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		stores := map[string]store{"a": f.store, "b": f.open(), "c": f.open()}
		deadline := time.Now().Add(4 * time.Second)
		games, moves, broken := 0, 0, false
		for n := 0; n == 0 || time.Now().Before(deadline); n++ {
			rapid.Check(t, func(rt *rapid.T) {
				if games > 0 && time.Now().After(deadline) && !broken {
					return
				}
				games++
				whole := false
				defer func() { broken = broken || !whole }()
				g := &game{f: f, stores: stores, holders: []string{"a", "b", "c"}, tickets: map[string][]model.Ticket{}}
				g.begin(rt, n)
				rt.Repeat(map[string]func(*rapid.T){
					"":                g.compare,
					"check out":       g.checkOut,
					"check out keys":  g.checkOutKeys,
					"check in":        g.checkIn,
					"check in newest": g.checkInNewest,
					"renew":           g.renew,
					"release":         g.release,
					"expire":          g.expire,
					"crash":           g.crash,
					"reprocess":       g.reprocess,
				})
				g.verify(rt)
				g.drain(rt)
				g.verify(rt)
				moves += g.moves
				whole = true
			})
		}
		t.Logf("%d games, %d moves", games, moves)
	})
}

func (g *game) begin(t *rapid.T, n int) {
	for _, table := range []string{"datasets", "dataset_keys", "loads", "tallies"} {
		must(t, g.f.raw.Exec(`DELETE FROM `+g.f.table(table)).Error)
	}
	rows := make([]checkout.NewRow, rapid.IntRange(1, 6).Draw(t, "rows"))
	for i := range rows {
		key := fmt.Sprintf("%d-%s-%d", n, time.Now().Format(time.RFC3339Nano), i)
		g.keys = append(g.keys, key)
		rows[i] = checkout.NewRow{Key: &key, Data: json.RawMessage(`{}`)}
	}
	ctx := t.Context()
	load, err := g.f.BeginLoad(ctx, *rows[0].Key, 0)
	must(t, err)
	must(t, g.f.Append(ctx, &load, checkout.Chunk{Rows: rows, Records: int64(len(rows)), Last: true}))
	must(t, g.f.raw.Raw(`SELECT id FROM `+g.f.datasets()+` ORDER BY id`).Scan(&g.ids).Error)
	if len(g.ids) != len(rows) {
		t.Fatalf("%d of %d rows were loaded", len(g.ids), len(rows))
	}
	g.oracle = newOracle(g.ids)
}

func (g *game) compare(t *rapid.T) {
	g.moves++
	table, err := g.f.whole()
	must(t, err)
	if text := g.oracle.differences(table); text != "" {
		t.Fatal(text)
	}
	for id, row := range table {
		if row.Attempts < 0 || row.Losses > row.Attempts {
			t.Fatalf("row %d: %+v", id, row)
		}
	}
}

func (g *game) holder(t *rapid.T) string { return rapid.SampledFrom(g.holders).Draw(t, "holder") }

func (g *game) someRows(t *rapid.T) []int64 {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(g.ids), 1, len(g.ids), rapid.ID[int64]).Draw(t, "rows")
}

func (g *game) took(t *rapid.T, holder string, claims []model.Claim) {
	must(t, g.oracle.checkOut(holder, claims))
	for _, c := range claims {
		g.tickets[holder] = append(g.tickets[holder], c.Ticket())
	}
}

// checkOut: which of the claimable rows come is the store's to choose.
func (g *game) checkOut(t *rapid.T) {
	holder, n := g.holder(t), rapid.IntRange(1, 4).Draw(t, "n")
	claims, err := g.stores[holder].CheckOut(t.Context(), holder, lease, n)
	must(t, err)
	if len(claims) > n {
		t.Fatalf("asked for %d rows, got %d", n, len(claims))
	}
	g.took(t, holder, claims)
}

func (g *game) checkOutKeys(t *rapid.T) {
	holder, ids := g.holder(t), g.someRows(t)
	want := 0
	for _, id := range ids {
		if g.oracle[id].claimable() {
			want++
		}
	}
	claims, err := g.stores[holder].CheckOutKeys(t.Context(), holder, lease, ids)
	must(t, err)
	if len(claims) != want {
		t.Fatalf("got %d of %d claimable rows", len(claims), want)
	}
	g.took(t, holder, claims)
}

// someTickets draws some that holder was ever given, at most one a row.
func (g *game) someTickets(t *rapid.T, holder string) []model.Ticket {
	all := g.tickets[holder]
	if len(all) == 0 {
		t.Skip("no tickets")
	}
	return rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, min(len(all), 4),
		func(ticket model.Ticket) int64 { return ticket.ID }).Draw(t, "tickets")
}

func (g *game) outcome(t *rapid.T) model.Outcome {
	g.results++
	o := model.Outcome{
		Verdict: rapid.SampledFrom([]model.Verdict{
			model.VerdictDone, model.VerdictFailed, model.VerdictRetry, model.VerdictUnavailable}).Draw(t, "verdict"),
		Delay: rapid.SampledFrom([]time.Duration{0, -time.Second, time.Hour}).Draw(t, "delay"),
	}
	switch o.Verdict {
	case model.VerdictDone:
		o.Result, o.Version = json.RawMessage(fmt.Sprint(g.results)), fmt.Sprintf("v%d", g.results)
		o.Error = rapid.SampledFrom([]string{"", fmt.Sprintf("remark %d", g.results)}).Draw(t, "remark")
	case model.VerdictFailed:
		o.Error, o.Version = fmt.Sprintf("error %d", g.results), fmt.Sprintf("v%d", g.results)
	case model.VerdictRetry:
		o.Error = fmt.Sprintf("error %d", g.results)
	case model.VerdictUnavailable:
		o.Error = rapid.SampledFrom([]string{"", fmt.Sprintf("error %d", g.results)}).Draw(t, "error")
	}
	return o
}

func (g *game) checkIn(t *rapid.T) {
	holder := g.holder(t)
	g.send(t, holder, g.someTickets(t, holder))
}

// checkInNewest makes sure that rows get finished as well.
func (g *game) checkInNewest(t *rapid.T) {
	holder := g.holder(t)
	tickets := g.tickets[holder]
	if len(tickets) == 0 {
		t.Skip("no tickets")
	}
	g.send(t, holder, tickets[len(tickets)-1:])
}

// send checks in, now and then twice, as after an answer that was lost.
func (g *game) send(t *rapid.T, holder string, tickets []model.Ticket) {
	batch := make([]model.CheckIn, len(tickets))
	for i, ticket := range tickets {
		batch[i] = model.CheckIn{Ticket: ticket, Outcome: g.outcome(t)}
	}
	for range 1 + rapid.IntRange(0, 3).Draw(t, "twice if 3")/3 {
		want := g.oracle.checkIn(batch)
		got, err := g.stores[holder].CheckIn(t.Context(), batch)
		must(t, err)
		if got.Replayed != want.Replayed || !sameTickets(got.Lost, want.Lost) {
			t.Fatalf("receipt %+v, want %+v", got, want)
		}
	}
}

func (g *game) renew(t *rapid.T) {
	holder := g.holder(t)
	tickets := g.someTickets(t, holder)
	want := g.oracle.renew(tickets)
	got, err := g.stores[holder].Renew(t.Context(), lease, tickets)
	must(t, err)
	if !sameTickets(got, want) {
		t.Fatalf("lost %v, want %v", got, want)
	}
}

func (g *game) release(t *rapid.T) {
	holder := g.holder(t)
	tickets := g.someTickets(t, holder)
	for _, ticket := range tickets {
		g.oracle.checkIn([]model.CheckIn{{Ticket: ticket, Outcome: model.Outcome{Verdict: model.VerdictUnavailable}}})
	}
	must(t, g.stores[holder].Release(t.Context(), tickets))
}

func (g *game) expire(*rapid.T) {
	g.f.expire()
	g.oracle.expire()
}

// crash: a process that starts anew has another name, and no tickets.
func (g *game) crash(t *rapid.T) {
	i := rapid.IntRange(0, len(g.holders)-1).Draw(t, "who")
	old := g.holders[i]
	g.results++
	name := fmt.Sprintf("%c%d", old[0], g.results)
	g.holders = slices.Clone(g.holders)
	g.holders[i] = name
	g.tickets[old] = nil
	g.stores = withName(g.stores, old, name)
}

func withName(stores map[string]store, old, name string) map[string]store {
	renamed := map[string]store{}
	for holder, s := range stores {
		if holder == old {
			holder = name
		}
		renamed[holder] = s
	}
	return renamed
}

func (g *game) reprocess(t *rapid.T) {
	sel, ids := checkout.Selection{}, g.ids
	switch rapid.SampledFrom([]string{"failed", "all", "keys"}).Draw(t, "selection") {
	case "failed":
		sel.Failed = true
	case "all":
		sel.All = true
	case "keys":
		ids = g.someRows(t)
		sel.Keys = []string{"no row's"}
		for _, id := range ids {
			sel.Keys = append(sel.Keys, g.keys[slices.Index(g.ids, id)])
		}
	}
	counts, err := g.f.Count(t.Context(), sel)
	must(t, err)
	putBack, deferred := g.oracle.reprocess(sel, ids)
	out, err := g.f.Reprocess(t.Context(), sel, checkout.ReprocessOptions{By: "me"})
	must(t, err)
	if out.PutBack != putBack || out.Deferred != deferred || len(out.Missing) != min(len(sel.Keys), 1) {
		t.Fatalf("reprocessed %+v, want %d and %d", out, putBack, deferred)
	}
	if counts.Total() != putBack+deferred {
		t.Fatalf("a dry run counted %d rows, want %d", counts.Total(), putBack+deferred)
	}
}

// drain: whatever has happened, every row can still be handed out and finished.
func (g *game) drain(t *rapid.T) {
	g.expire(t)
	for turn := 0; ; turn++ {
		counts, err := g.f.Counts(t.Context())
		must(t, err)
		if counts.Unprocessed() == 0 {
			break
		}
		if turn > 50 {
			t.Fatalf("rows that nobody is handed out: %v", counts)
		}
		holder := g.holders[turn%len(g.holders)]
		s := g.stores[holder]
		claims, err := s.CheckOut(t.Context(), holder, lease, 2)
		must(t, err)
		g.took(t, holder, claims)
		for _, c := range claims {
			batch := []model.CheckIn{done(c, `0`)}
			g.oracle.checkIn(batch)
			_, err := s.CheckIn(t.Context(), batch)
			must(t, err)
		}
		if len(claims) == 0 {
			agenda, err := s.Agenda(t.Context())
			must(t, err)
			if !agenda.Open || agenda.Next > 0 {
				t.Fatalf("agenda %+v with %v", agenda, counts)
			}
		}
	}
	g.compare(t)
}

// verify: whatever has happened, nothing is found, and no counter is off.
func (g *game) verify(t *rapid.T) {
	v, err := g.f.Verify(t.Context(), checkout.VerifyOptions{NoMend: true})
	must(t, err)
	if v.Offences() > 0 || v.Differs() || v.Rows != int64(len(g.ids)) {
		t.Fatalf("verified: %+v", v)
	}
}

func sameTickets(a, b []model.Ticket) bool {
	byRow := func(a, b model.Ticket) int { return int(a.ID - b.ID) }
	return slices.Equal(slices.SortedFunc(slices.Values(a), byRow), slices.SortedFunc(slices.Values(b), byRow))
}

func must(t *rapid.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
