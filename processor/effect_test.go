package processor_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gorm.io/gorm"

	"github.com/windrow-go/windrow/model"
	"github.com/windrow-go/windrow/processor"
)

func TestFailingEffectIsChargedToItsOwnRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(30)
		effects, dropped := map[int64]int{}, 0
		drain(t, f, handle(func(_ context.Context, row model.Dataset) (any, error) {
			return model.Answer{Result: row.ID, Discard: func() { dropped++ }, Effect: func(*gorm.DB) error {
				if row.ID == 5 {
					return errors.New("no such account")
				}
				effects[row.ID]++
				return nil
			}}, nil
		}), processor.Options{Concurrency: 3, MaxAttempts: 2, RetryMin: time.Millisecond, RetryMax: time.Millisecond})
		wantStates(t, f, map[model.State]int{model.Done: 29, model.Failed: 1})
		if r := f.row(5); r.Attempts != 2 || !strings.Contains(*r.Error, "no such account") {
			t.Errorf("row 5 after %d attempts: %s", r.Attempts, *r.Error)
		}
		if r := f.row(6); r.Attempts != 1 || effects[6] == 0 || string(r.Result) != "6" {
			t.Errorf("row 6 after %d attempts, %d effects: %s", r.Attempts, effects[6], r.Result)
		}
		if dropped != 2 {
			t.Errorf("%d outcomes were told that they are not stored, want 2", dropped)
		}
	})
}

// What an effect could not reach is not the database.
func TestEffectsOwnOutageIsNotTheDatabases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1)
		w := drain(t, f, handle(func(context.Context, model.Dataset) (any, error) {
			return model.Answer{Effect: func(*gorm.DB) error { return model.ErrUnavailable }}, nil
		}), processor.Options{MaxAttempts: 1})
		wantStates(t, f, map[model.State]int{model.Failed: 1})
		if n := w.logged("the database is back"); n != 0 {
			t.Errorf("%d outages", n)
		}
	})
}

func TestOutcomeOfALostRowIsDiscarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1)
		discarded := false
		w := start(t, f, handle(func(context.Context, model.Dataset) (any, error) {
			f.steal(1)
			return &model.Answer{Discard: func() { discarded = true; panic("never mind") }}, nil
		}), processor.Options{})
		pass(time.Second)
		w.stop()
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
		if !discarded {
			t.Error("it was not")
		}
	})
}

func TestOnceIsNotDoneAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(20)
		mails := map[int64]int{}
		drain(t, f, handle(func(ctx context.Context, row model.Dataset) (any, error) {
			err := processor.Once(ctx, row, "mail", func(context.Context) error {
				mails[row.ID]++
				return nil
			})
			if err == nil && row.Attempts < 3 {
				err = errors.New("failed after the mail")
			}
			return nil, err
		}), processor.Options{RetryMin: time.Millisecond, RetryMax: time.Millisecond})
		wantStates(t, f, map[model.State]int{model.Done: 20})
		for id, n := range mails {
			if n != 1 {
				t.Errorf("row %d: %d mails", id, n)
			}
		}
	})
}

func TestOnceThatFailedIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1)
		tries := 0
		drain(t, f, handle(func(ctx context.Context, row model.Dataset) (any, error) {
			return nil, processor.Once(ctx, row, "mail", func(context.Context) error {
				if tries++; tries < 3 {
					return errors.New("mailbox full")
				}
				return nil
			})
		}), processor.Options{RetryMin: time.Millisecond, RetryMax: time.Millisecond})
		if tries != 3 {
			t.Errorf("%d tries", tries)
		}
	})
}

func TestMarkOutlivesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1)
		mails := 0
		w := start(t, f, handle(func(ctx context.Context, row model.Dataset) (any, error) {
			return nil, processor.Once(ctx, row, "mail", func(context.Context) error {
				mails++
				f.setFault(func(string, bool) error { return model.ErrUnavailable })
				return nil
			})
		}), processor.Options{Concurrency: 1})
		pass(10 * time.Minute)
		f.setFault(nil)
		pass(10 * time.Second)
		wantStates(t, f, map[model.State]int{model.Done: 1})
		if len(f.marks) != 1 || mails != 1 {
			t.Errorf("%d marks, %d mails", len(f.marks), mails)
		}
		w.stop()
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestOnceNeedsTheHandlersContext(t *testing.T) {
	err := processor.Once(t.Context(), model.Dataset{}, "mail", func(context.Context) error { return nil })
	if err == nil || err.Error() != "once: the context is not one that a handler was given" {
		t.Errorf("got %v", err)
	}
}
