package checkout_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/model"
)

func nested(n int) string { return strings.Repeat(`[`, n) + strings.Repeat(`]`, n) }

func TestResultsAreStoredFaithfully(t *testing.T) {
	tests := map[string]string{
		"nothing":              ``,
		"null":                 `null`,
		"false":                `false`,
		"empty object":         `{}`,
		"2^53+1":               `9007199254740993`,
		"forty digits":         `1234567890123456789012345678901234567890`,
		"many decimals":        `0.1000000000000000000000000000000000000001`,
		"1e400":                `1e400`,
		"1e-400":               `1e-400`,
		"minus nought":         `-0`,
		"unicode":              `{"ключ": "ünï 漢字 😀 \u00e9 \ud83d\ude00 \u2028"}`,
		"quotes and escapes":   `"a \"quoted\" \\ path\nand ' '' $1 $$ @holder ? {schema}"`,
		"nested 1,000 deep":    nested(1000),
		"a text of 5 MB":       `"` + strings.Repeat("0123456789abcdéé", 300_000) + `"`,
		"an array of 20,000":   `[` + strings.Repeat(`1,`, 19_999) + `1]`,
		"text that looks like": `"null"`,
	}
	onEach(t, func(t *testing.T, f *fixture) {
		ids := f.add(len(tests))
		claims, err := f.CheckOutKeys(t.Context(), "a", lease, ids)
		check(t, err)
		want := map[int64]string{}
		name := map[int64]string{}
		for n, result := range tests { // each alone: large ones may be stored in another way
			c := claims[len(want)]
			want[c.ID], name[c.ID] = result, n
			equal(t, "lost", len(f.checkIn(done(c, result)).Lost), 0)
		}
		for id, text := range want {
			row := f.row(id)
			if !sameJSON(t, row.Result, []byte(cmp.Or(text, "null"))) {
				t.Errorf("%s: got %.80s, want %.80s", name[id], row.Result, text)
			}
			f.wantState(id, model.Done)
		}
		exported := 0
		check(t, f.Export(t.Context(), checkout.ExportOptions{}, func(row checkout.Finished) error {
			exported++
			if !sameJSON(t, row.Result, []byte(cmp.Or(want[row.ID], "null"))) {
				t.Errorf("%s: exported %.80s", name[row.ID], row.Result)
			}
			return nil
		}))
		equal(t, "exported", exported, len(tests))
	})
}

// sameJSON compares values, with all digits of their numbers.
func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	decode := func(text []byte) any {
		d := json.NewDecoder(strings.NewReader(string(text)))
		d.UseNumber()
		var value any
		check(t, d.Decode(&value))
		return value
	}
	return sameValue(decode(a), decode(b))
}

func sameValue(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		x, okX := new(big.Rat).SetString(string(a))
		y, okY := new(big.Rat).SetString(string(b))
		return ok && okX && okY && x.Cmp(y) == 0
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !sameValue(a[i], b[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k := range a {
			if !sameValue(a[k], b[k]) {
				return false
			}
		}
		return true
	default:
		return a == b
	}
}

func TestErrorTextsAreStoredFaithfully(t *testing.T) {
	tests := map[string]string{
		"5 MB":    strings.Repeat("it went wrong é ", 330_000),
		"odd":     "line 1\nline 2\t'quoted' \\ {\"a\": 1} % $1 @ids ? 漢字 😀\x7f\x1b[0m",
		"unicode": "\ufffd \ufeff \u202e",
	}
	onEach(t, func(t *testing.T, f *fixture) {
		for name, text := range tests {
			ids := f.add(2)
			last := ids[len(ids)-2:]
			claims, err := f.CheckOutKeys(t.Context(), "a", lease, last)
			check(t, err)
			f.checkIn(failed(claims[0], text), retry(claims[1], 0, text))
			if got := *f.row(last[0]).Error; got != text {
				t.Errorf("%s: error is %.80q", name, got)
			}
			if got := *f.row(last[1]).LastError; got != text {
				t.Errorf("%s: last error is %.80q", name, got)
			}
		}
	})
}

// What PostgreSQL can't store is refused together with its whole batch, and said
// to be, so that the guilty row can be found.
func TestARefusedValueLeavesItsWholeBatchUnstored(t *testing.T) {
	tests := map[string]func(model.Claim) model.CheckIn{
		"NUL in a JSON text":     func(c model.Claim) model.CheckIn { return done(c, `{"a": "\u0000"}`) },
		"NUL in a key":           func(c model.Claim) model.CheckIn { return done(c, `{"\u0000": 1}`) },
		"half a surrogate pair":  func(c model.Claim) model.CheckIn { return done(c, `"\ud83d"`) },
		"1e200000":               func(c model.Claim) model.CheckIn { return done(c, `1e200000`) },
		"nested 20,000 deep":     func(c model.Claim) model.CheckIn { return done(c, nested(20_000)) },
		"not JSON":               func(c model.Claim) model.CheckIn { return done(c, `NaN`) },
		"half of a value":        func(c model.Claim) model.CheckIn { return done(c, `{"a": `) },
		"not UTF-8":              func(c model.Claim) model.CheckIn { return done(c, "\"\xff\"") },
		"NUL in an error":        func(c model.Claim) model.CheckIn { return failed(c, "a\x00b") },
		"invalid UTF-8 in error": func(c model.Claim) model.CheckIn { return retry(c, 0, "a\xffb") },
		"NUL in a version": func(c model.Claim) model.CheckIn {
			in := done(c, `1`)
			in.Version = "\x00"
			return in
		},
	}
	f := onPostgres(t, checkout.Options{NoTrafficLight: true})
	for name, bad := range tests {
		t.Run(name, func(t *testing.T) {
			ids := f.add(3)
			ids = ids[len(ids)-3:]
			claims, err := f.CheckOutKeys(t.Context(), "a", lease, ids)
			check(t, err)
			_, err = f.CheckIn(t.Context(), []model.CheckIn{done(claims[0], `1`), bad(claims[1]), done(claims[2], `3`)})
			if !errors.Is(err, model.ErrRefused) || errors.Is(err, model.ErrUnavailable) {
				t.Fatalf("got %v, want ErrRefused", err)
			}
			if len(err.Error()) > 1000 {
				t.Errorf("the error holds the value: %.200s…", err)
			}
			for _, id := range ids {
				row := f.row(id)
				equal(t, "processed", row.IsProcessed, false)
				equal(t, "holder", *row.CheckedOutBy, "a")
			}
			receipt := f.checkIn(done(claims[0], `1`), done(claims[2], `3`), failed(claims[1], "it was refused"))
			equal(t, "lost", len(receipt.Lost), 0)
			equal(t, "replayed", receipt.Replayed, 0)
			f.wantState(ids[1], model.Failed)
		})
	}
}

// Data comes by another way, COPY or an insert with keys.
func TestRefusedDataLeavesItsWholeChunkUnloaded(t *testing.T) {
	f := onPostgres(t, checkout.Options{})
	key := func(s string) *string { return &s }
	for name, bad := range map[string]string{"NUL": `"\u0000"`, "too big": `1e200000`, "too deep": nested(20_000), "not JSON": `{`} {
		for way, rows := range map[string][]checkout.NewRow{
			"without keys": {{Data: []byte(`1`)}, {Data: []byte(bad)}},
			"with keys":    {{Key: key("a"), Data: []byte(`1`)}, {Key: key("b"), Data: []byte(bad)}},
		} {
			load, err := f.BeginLoad(t.Context(), name+" "+way, 0)
			check(t, err)
			before := load
			err = f.Append(t.Context(), &load, checkout.Chunk{Rows: rows, Records: 2, Last: true})
			if !errors.Is(err, model.ErrRefused) {
				t.Errorf("%s, %s: got %v, want ErrRefused", name, way, err)
			}
			equal(t, "the load has not moved", load, before)
		}
	}
	counts, err := f.Counts(t.Context())
	check(t, err)
	equal(t, "rows", counts.Total(), 0)
}

func TestDataIsStoredFaithfully(t *testing.T) {
	data := []string{`9007199254740993`, `1e400`, `""`, `"漢字 😀"`, nested(1000), `{"a": [1, {"b": null}]}`, `"` + strings.Repeat("x", 5<<20) + `"`}
	onEach(t, func(t *testing.T, f *fixture) {
		var rows []checkout.NewRow
		for _, d := range data {
			rows = append(rows, checkout.NewRow{Data: []byte(d)})
		}
		ids := f.load("x", rows)
		claims, err := f.CheckOutKeys(t.Context(), "a", lease, ids)
		check(t, err)
		for i, c := range claims {
			if c.ID != ids[i] || !sameJSON(t, c.Data, []byte(data[i])) {
				t.Errorf("row %d: got %.80s, want %.80s", c.ID, c.Data, data[i])
			}
		}
	})
}
