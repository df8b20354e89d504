package bench

import (
	"errors"
	"strings"
	"testing"
)

func TestTicksAreTheServersOnly(t *testing.T) {
	const fields = " S 7 0 0 0 0 0 0 0 0 0 10 20 30 40 0"
	tests := map[string]struct {
		line string
		want int64
	}{
		"postmaster":          {"7 (postgres)" + strings.Replace(fields, "S 7", "S 1", 1), 100},
		"its child":           {"8 (postgres: (a) b)" + fields, 30},
		"another's child":     {"8 (postgres)" + strings.Replace(fields, "S 7", "S 9", 1), 0},
		"a line of something": {"nonsense", 0},
	}
	for name, tt := range tests {
		if got := ticksOf(tt.line, 7); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

// A run that lost rows, or had some worked twice, must not pass for a figure.
func TestAnUnsoundRunIsFound(t *testing.T) {
	ctx := t.Context()
	target, err := openTarget(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := target.close(ctx); err != nil {
			t.Error(err)
		}
	}()
	b := &Bench{target: target}
	const done = `is_processed = true, attempts = 1, checkouts = 1, result = '1'`
	for name, tt := range map[string]struct {
		worked        string
		crashes       bool
		lost, doubled int64
	}{
		"all well":               {done, false, 0, 0},
		"one was not finished":   {`is_processed = id <> 1, attempts = 1, result = '1'`, false, 1, 0},
		"one has no result":      {`is_processed = true, attempts = 1, result = CASE WHEN id <> 1 THEN CAST('1' AS jsonb) END`, false, 1, 0},
		"one took two tries":     {`is_processed = true, attempts = 1 + CAST(id = 1 AS integer), result = '1'`, false, 0, 1},
		"one lost its worker":    {`is_processed = true, attempts = 1 + CAST(id = 1 AS integer), losses = CAST(id = 1 AS integer), result = '1'`, false, 0, 1},
		"which a crash may do":   {`is_processed = true, attempts = 1 + CAST(id = 1 AS integer), losses = CAST(id = 1 AS integer), result = '1'`, true, 0, 0},
		"some were never worked": {`last_error = NULL`, false, 5, 0},
	} {
		if _, err := target.fill(ctx, 5, 100); err != nil {
			t.Fatal(err)
		}
		// Ids go on from table to table; here they begin with 1.
		if err := target.exec(ctx, `UPDATE `+target.table()+` SET id = id - (SELECT min(id) - 1 FROM `+target.table()+`)`); err != nil {
			t.Fatal(err)
		}
		if err := target.exec(ctx, `UPDATE `+target.table()+` SET `+tt.worked); err != nil {
			t.Fatal(err)
		}
		r := Result{Parameters: Parameters{Rows: 5}}
		err := b.verify(ctx, &r, plan{crashes: tt.crashes})
		var unsound *Unsound
		if r.Lost != tt.lost || r.Doubled != tt.doubled || errors.As(err, &unsound) != (tt.lost+tt.doubled > 0) {
			t.Errorf("%s: %d lost, %d doubled, error %v; want %d and %d", name, r.Lost, r.Doubled, err, tt.lost, tt.doubled)
		}
	}
}
