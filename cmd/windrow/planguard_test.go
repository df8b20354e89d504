package main // no other package can import a command's

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/windrow-go/windrow/checkout"
)

// fakeChecker answers the guard's looks, counted from 1.
type fakeChecker struct {
	looks  int
	answer func(look int) ([]checkout.PlanFault, error)
}

func (f *fakeChecker) CheckPlans(context.Context) ([]checkout.PlanFault, error) {
	f.looks++
	return f.answer(f.looks)
}

func TestThePlanGuardWarnsHourlyAndOutlivesErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checker := &fakeChecker{answer: func(look int) ([]checkout.PlanFault, error) {
			if look == 2 {
				return nil, errors.New("no answer")
			}
			return []checkout.PlanFault{{Statement: "claim", Found: "Seq Scan", Cure: "ANALYZE it"}}, nil
		}}
		core, logged := observer.New(zap.DebugLevel)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			guardPlans(ctx, checker, zap.New(core))
			close(ended)
		}()
		synctest.Wait()
		warnings := logged.FilterLevelExact(zapcore.WarnLevel).All()
		if len(warnings) != 1 {
			t.Fatalf("%d warnings at the start, want one", len(warnings))
		}
		if f := warnings[0].ContextMap(); f["statement"] != "claim" || f["found"] != "Seq Scan" || f["cure"] != "ANALYZE it" {
			t.Errorf("fields: %v", f)
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if checker.looks < 20 || checker.looks > 24 {
			t.Errorf("%d looks in a day, want one in 60 to 75 minutes", checker.looks)
		}
		if n := logged.FilterLevelExact(zapcore.WarnLevel).Len(); n != checker.looks-1 {
			t.Errorf("%d warnings in %d looks, one of which failed", n, checker.looks)
		}
		if n := logged.FilterLevelExact(zapcore.DebugLevel).Len(); n != 1 {
			t.Errorf("%d debug lines, want one for the failure", n)
		}
		stop()
		<-ended
	})
}
