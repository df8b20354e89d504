package processor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windrow-go/windrow/model"
	"github.com/windrow-go/windrow/processor"
)

type bomb struct{}

func (bomb) MarshalJSON() ([]byte, error) { panic("no JSON from me") }

type mute struct{}

func (*mute) Error() string { panic("no words from me") }

func TestResultsAreStoredOrTheirRowFails(t *testing.T) {
	cycle := map[string]any{}
	cycle["self"] = cycle
	tests := []struct {
		name   string
		result any
		want   string // stored result
		remark string // part of the last error
		failed string // part of the error
	}{
		{name: "nothing", result: nil, want: ""},
		{name: "raw JSON as it is", result: json.RawMessage(`{"b":9007199254740993, "a":1e400}`), want: `{"b":9007199254740993, "a":1e400}`},
		{name: "nil raw JSON", result: json.RawMessage(nil), want: ""},
		{name: "a Go value", result: map[string]int{"n": 1}, want: `{"n":1}`},
		{name: "NUL", result: json.RawMessage(`"a\u0000b"`), want: `"a\ufffdb"`, remark: "NUL"},
		{name: "invalid UTF-8", result: json.RawMessage("\"a\xffb\""), want: "\"a\ufffdb\"", remark: "UTF-8"},
		{name: "a text of invalid UTF-8", result: "a\xffb", want: `"a\ufffdb"`, remark: "UTF-8"},
		{name: "5 MB", result: strings.Repeat("x", 5<<20), want: `"` + strings.Repeat("x", 5<<20) + `"`},
		{name: "NaN", result: math.NaN(), failed: "NaN"},
		{name: "a channel", result: make(chan int), failed: "can't be stored"},
		{name: "a cycle", result: cycle, failed: "can't be stored"},
		{name: "not JSON", result: json.RawMessage("{"), failed: "can't be stored"},
		{name: "empty raw JSON", result: json.RawMessage(""), failed: "can't be stored"},
		{name: "too deep", result: json.RawMessage(strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)), failed: "can't be stored"},
		{name: "too large a number", result: json.RawMessage("1e200000"), failed: "can't be stored"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(1)
				w := drain(t, f, handle(func(context.Context, model.Dataset) (any, error) { return tt.result, nil }), processor.Options{})
				row := f.row(1)
				if got := text(row.Error); tt.failed == "" != (got == "") || !strings.Contains(got, tt.failed) {
					t.Errorf("error = %q, want %q in it", got, tt.failed)
				}
				if tt.failed == "" && string(row.Result) != tt.want {
					t.Errorf("result = %.80s, want %.80s", row.Result, tt.want)
				}
				if got := text(row.LastError); tt.failed == "" && (tt.remark == "" != (got == "") || !strings.Contains(got, tt.remark)) {
					t.Errorf("last error = %q, want %q in it", got, tt.remark)
				}
				if s := w.Stats(); s.Calls != 1 || (s.FailedCalls == 1) != (tt.failed != "") {
					t.Errorf("stats = %+v", s)
				}
			})
		})
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func TestErrorsOfHandlers(t *testing.T) {
	plain := errors.New("no luck")
	tests := []struct {
		name  string
		do    func() (any, error)
		want  string
		calls int64
	}{
		{"a plain error is tried again", func() (any, error) { return nil, plain }, "no luck", 3},
		{"a permanent one is not", func() (any, error) { return nil, processor.Permanent(plain) }, "no luck", 1},
		{"a wrapped permanent one is not", func() (any, error) { return nil, fmt.Errorf("here: %w", processor.Permanent(plain)) }, "here: no luck", 1},
		{"a retry counts", func() (any, error) { return nil, processor.RetryAfter(-time.Hour, plain) }, "no luck", 3},
		{"a panic is an error", func() (any, error) { panic("ouch") }, "panic: ouch", 3},
		{"a nil panic is an error", func() (any, error) { panic(nil) }, "panic: ", 3},
		{"a nil dereference is an error", func() (any, error) { var p *int; return *p, nil }, "panic: runtime error: invalid memory address", 3},
		{"the end of the goroutine is an error", func() (any, error) { runtime.Goexit(); return nil, nil }, "Goexit", 3},
		{"a panic while encoding is an error", func() (any, error) { return bomb{}, nil }, "no JSON from me", 3},
		{"a panic in the error is an error", func() (any, error) { return nil, (*mute)(nil) }, "no words from me", 3},
		{"an error without words has some", func() (any, error) { return nil, errors.New("") }, "an error without a text", 3},
		{"NUL and bad UTF-8 are made safe", func() (any, error) { return nil, errors.New("a\x00b\xff") }, "a\ufffdb\ufffd", 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(1)
				// One slot: if it were lost, nothing would go on.
				w := drain(t, f, handle(func(context.Context, model.Dataset) (any, error) { return tt.do() }),
					processor.Options{Concurrency: 1, MaxAttempts: 3})
				row := f.row(1)
				if got := text(row.Error); !strings.Contains(got, tt.want) {
					t.Errorf("error = %q, want %q", got, tt.want)
				}
				if strings.Contains(text(row.Error), "goroutine 1") {
					t.Error("a stack trace was stored with the row")
				}
				if s := w.Stats(); s.Calls != tt.calls || s.FailedCalls != tt.calls || s.Failed != 1 || s.Retried != tt.calls-1 {
					t.Errorf("stats = %+v, want %d calls", s, tt.calls)
				}
			})
		})
	}
}

func TestLongErrorTextIsShortened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1)
		drain(t, f, handle(func(context.Context, model.Dataset) (any, error) {
			return nil, processor.Permanent(errors.New("begin" + strings.Repeat("x", 1<<20) + "end"))
		}), processor.Options{})
		got := text(f.row(1).Error)
		if len(got) > 8<<10 || !strings.HasPrefix(got, "begin") || !strings.HasSuffix(got, "end") {
			t.Fatalf("stored error of %d bytes: %.20s…", len(got), got)
		}
	})
}

func TestRetriesWaitAtRandomUnderACeilingThatDoubles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rows, tries = 200, 5
		f := newFake(2 * rows)
		var mu sync.Mutex
		last, waits := map[int64]time.Time{}, [tries][]time.Duration{}
		drain(t, f, handle(func(_ context.Context, row model.Dataset) (any, error) {
			if row.ID > 2*rows || row.ID%2 == 0 {
				return nil, nil // so that the failures are not the handler's
			}
			f.add(1)
			mu.Lock()
			defer mu.Unlock()
			try := row.Attempts - 1
			waits[try] = append(waits[try], time.Since(last[row.ID]))
			last[row.ID] = time.Now()
			return nil, errors.New("no luck")
		}), processor.Options{MaxAttempts: tries, RetryMin: time.Minute, RetryMax: 4 * time.Minute})

		wantStates(t, f, map[model.State]int{model.Failed: rows, model.Done: rows + rows*tries})
		for try, ceiling := range []time.Duration{1: time.Minute, 2: 2 * time.Minute, 3: 4 * time.Minute, 4: 4 * time.Minute} {
			if try == 0 {
				continue
			}
			slices.Sort(waits[try])
			shortest, longest := waits[try][0], waits[try][rows-1]
			// A worker may notice a due row late, but not much.
			if shortest > ceiling/10 || longest < ceiling*9/10 || longest > ceiling+2*time.Second {
				t.Errorf("waits before try %d are from %v to %v, want from 0 to %v", try+1, shortest, longest, ceiling)
			}
		}
	})
}

func TestTimeoutEndsTheContextAndIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1)
		var cause error
		drain(t, f, handle(func(ctx context.Context, row model.Dataset) (any, error) {
			err := work(ctx, time.Hour)
			cause = context.Cause(ctx)
			return nil, fmt.Errorf("fetch: %w", err)
		}), processor.Options{Timeout: 30 * time.Second, MaxAttempts: 1})
		if got := text(f.row(1).Error); got != "timed out after 30s" {
			t.Errorf("error = %q", got)
		}
		if !errors.Is(cause, processor.ErrTimeout) {
			t.Errorf("cause = %v", cause)
		}
	})
}

func TestTimeoutKeepsWhatTheHandlerSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		w := drain(t, f, handle(func(ctx context.Context, row model.Dataset) (any, error) {
			err := work(ctx, time.Hour)
			if row.ID == 1 {
				return nil, processor.Permanent(err)
			}
			return "in spite of it", nil
		}), processor.Options{Timeout: time.Second})
		if s := w.Stats(); s.Calls != 2 || s.Failed != 1 || s.Done != 1 {
			t.Errorf("stats = %+v", s)
		}
	})
}

func TestFailuresAreLoggedAtALimitedRateAndNoneIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1000)
		w := drain(t, f, handle(func(context.Context, model.Dataset) (any, error) {
			return nil, processor.Permanent(errors.New("no luck"))
		}), processor.Options{})
		told := w.logged("row failed")
		if told != 10 {
			t.Errorf("%d failures were logged within a second, want 10", told)
		}
		for _, e := range w.logs.FilterMessage("more rows failed").All() {
			told += int(e.ContextMap()["rows"].(int64))
		}
		if told != 1000 {
			t.Errorf("%d failures are told of, want 1000", told)
		}
	})
}
