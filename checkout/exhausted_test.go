package checkout

import (
	"testing"

	"pgregory.net/rapid"
)

// Against a plain set of ids as the oracle.
func TestExhaustedStretches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const ids = 60
		var e exhausted
		gone := map[int64]bool{}
		for range rapid.IntRange(0, 12).Draw(t, "stretches") {
			first := rapid.Int64Range(0, ids).Draw(t, "first")
			last := rapid.Int64Range(0, ids).Draw(t, "last")
			e.add(first, last)
			for id := first + 1; id <= last; id++ {
				gone[id] = true
			}
			for i := 1; i < len(e); i++ {
				if e[i-1].Last >= e[i].First {
					t.Fatalf("not in order, or not merged: %v", e)
				}
			}
		}
		for id := int64(0); id <= ids; id++ {
			want := id
			for gone[want+1] {
				want++
			}
			if got := e.beyond(id); got != want {
				t.Fatalf("beyond %d: %d, want %d, of %v", id, got, want, e)
			}
		}
		low := rapid.Int64Range(0, ids).Draw(t, "low")
		high := rapid.Int64Range(low, ids).Draw(t, "high")
		some := false
		for id := low + 1; id <= high; id++ {
			some = some || !gone[id]
		}
		got, ok := e.somewhere(low, high)
		if ok != some || ok && (got < low || got >= high || gone[got+1]) {
			t.Fatalf("somewhere in (%d, %d]: %d, %v, of %v", low, high, got, ok, e)
		}
	})
}

func TestRowsFarApartAreNoSignOfOthers(t *testing.T) {
	for name, tt := range map[string]struct {
		keys  []int64
		early bool
	}{
		"nothing":                 {nil, true},
		"a remainder at the near": {[]int64{1, 2, 3, 4, 40}, true},
		"few, but all the way":    {[]int64{10, 50, 90}, false},
		"only the far end":        {[]int64{99}, false},
	} {
		if got := endsEarly(tt.keys, 0, 100); got != tt.early {
			t.Errorf("%s: got %v, want %v", name, got, tt.early)
		}
	}
}
