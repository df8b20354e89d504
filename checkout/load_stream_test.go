package checkout_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/windrow-go/windrow/checkout"
)

// chunks of n rows each; the rows of those in due are due in an hour, and those in bad
// are no JSON.
func chunks(count, n int, due, bad map[int]bool) []checkout.Chunk {
	all := make([]checkout.Chunk, count)
	for i := range all {
		for k := range n {
			row := checkout.NewRow{Data: fmt.Appendf(nil, `%d`, i*n+k)}
			if due[i] {
				row.AvailableAt = time.Now().Add(time.Hour)
			}
			if bad[i] {
				row.Data = []byte(`{`)
			}
			all[i].Rows = append(all[i].Rows, row)
		}
		all[i].Records, all[i].Last = int64((i+1)*n), i == count-1
	}
	return all
}

// appendAll appends chunks as long as there are some, and tells in how many
// transactions.
func (f *fixture) appendAll(load *checkout.Load, all []checkout.Chunk) (transactions int, err error) {
	for len(all) > 0 {
		c := all[0]
		all = all[1:]
		c.Next = func() (checkout.Chunk, bool) {
			if len(all) == 0 {
				return checkout.Chunk{}, false
			}
			next := all[0]
			all = all[1:]
			return next, true
		}
		transactions++
		if err := f.Append(f.t.Context(), load, c); err != nil {
			return transactions, err
		}
	}
	return transactions, nil
}

func TestChunksThatFollowAreStoredInOrder(t *testing.T) {
	onEach(t, func(t *testing.T, f *fixture) {
		load, err := f.BeginLoad(t.Context(), "x", 0)
		check(t, err)
		all := chunks(6, 10, map[int]bool{1: true, 2: true, 5: true}, nil)
		all[3].Rows, all[3].Rejected = nil, 10 // all of them were bad
		all[4].Rejected, all[5].Rejected = 10, 10
		transactions, err := f.appendAll(&load, all)
		check(t, err)
		equal(t, "transactions", transactions, map[string]int{"postgres": 1, "sqlite": 6}[f.engine])
		equal(t, "inserted", load.Inserted, 50)
		if load.FinishedAt == nil {
			t.Error("the load is not finished")
		}
		stored, err := f.LatestLoad(t.Context(), "x")
		check(t, err)
		equal(t, "records", stored.Records, 60)
		equal(t, "rejected", stored.Rejected, 10)
		var ns []int
		check(t, f.raw.Raw(`SELECT CAST(CAST(data AS text) AS integer) FROM `+f.datasets()+` ORDER BY id`).Scan(&ns).Error)
		for i, n := range ns {
			if want := i + i/30*10; n != want {
				t.Fatalf("row %d holds %d, want %d", i, n, want)
			}
		}
		counts := f.exactCounts()
		if counts["waiting"] != 30 || counts["fresh"] != 20 {
			t.Errorf("counts %v", counts)
		}
	})
}

func TestOfChunksThatFollowAllAreStoredOrNone(t *testing.T) {
	f := onPostgres(t, checkout.Options{})
	load, err := f.BeginLoad(t.Context(), "x", 0)
	check(t, err)
	if _, err = f.appendAll(&load, chunks(4, 10, nil, map[int]bool{2: true})); err == nil {
		t.Fatal("a row that is no JSON was taken")
	}
	equal(t, "records, as the caller has it", load.Records, 0)
	stored, err := f.LatestLoad(t.Context(), "x")
	check(t, err)
	equal(t, "records", stored.Records, 0)
	equal(t, "rows", f.exactCounts().Total(), 0)
}
