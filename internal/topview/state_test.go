package topview_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/topview"
	"github.com/windrow-go/windrow/model"
)

// processed is a look that many milliseconds after noon, when so many rows were done.
func processed(after int64, done int64) checkout.Overview {
	return checkout.Overview{Now: noon.Add(time.Duration(after) * time.Millisecond), Counts: checkout.Counts{model.Done: done}, Rate: 77}
}

func wantBars(t *testing.T, r *topview.Rates, want ...float64) {
	t.Helper()
	bars := r.Bars(300)[300-len(want):]
	for i := range want {
		if math.Abs(bars[i]-want[i]) > 0.5 {
			t.Fatalf("bars %v, want %v", bars, want)
		}
	}
}

func TestEachSecondHasItsRate(t *testing.T) {
	var r topview.Rates
	if r.Now() >= 0 {
		t.Errorf("a rate of nothing: %v", r.Now())
	}
	for _, o := range []checkout.Overview{processed(0, 1000), processed(990, 1099), processed(2010, 1303)} {
		r.Add(o)
	}
	wantBars(t, &r, -1, 100, 200)
	if now := r.Now(); math.Abs(now-150) > 1 {
		t.Errorf("rate now %v, want the mean of the last seconds", now)
	}
}

func TestRowsPutBackAreNoNegativeRate(t *testing.T) {
	var r topview.Rates
	r.Add(processed(0, 1000))
	r.Add(processed(1000, 10))
	r.Add(processed(2000, 60))
	wantBars(t, &r, -1, 0, 50)
}

func TestAGapIsFilledWithItsMean(t *testing.T) {
	var r topview.Rates
	r.Add(processed(0, 0))
	r.Add(processed(1000, 10))
	r.Add(processed(5000, 410))
	wantBars(t, &r, -1, 10, 100, 100, 100, 100)
	r.Add(processed(10_000_000, 410))
	wantBars(t, &r, 0, 0, 0)
}

func TestRatesOfEstimatesAreThoseOfTheLastMinute(t *testing.T) {
	var r topview.Rates
	r.Add(processed(0, 0))
	o := processed(1000, 90_000)
	o.Estimated = []model.State{model.Done}
	r.Add(o)
	wantBars(t, &r, -1, 77)
}

func TestAClockSetBackBeginsAnew(t *testing.T) {
	var r topview.Rates
	r.Add(processed(5000, 0))
	r.Add(processed(0, 100))
	r.Add(processed(1000, 110))
	wantBars(t, &r, -1, 10)
}

// A bar is the mean of whole stretches of time, so that it stays as it is while the
// time goes on.
func TestBarsStayAsTheyAre(t *testing.T) {
	var r topview.Rates
	done := int64(0)
	for i := range int64(295) {
		r.Add(processed(i*1000, done))
		done += i
	}
	before := r.Bars(60) // of five seconds each
	for i := range int64(5) {
		r.Add(processed((295+i)*1000, done))
		done += 295 + i
	}
	after := r.Bars(60)
	for i := 1; i < 58; i++ {
		if math.Abs(after[i]-before[i+1]) > 1e-6 {
			t.Fatalf("bar %d was %v and is %v", i, before[i+1], after[i])
		}
	}
}

func TestKeysScrollTheWorkers(t *testing.T) {
	var workers []model.Worker
	for i := range 50 {
		workers = append(workers, worker(fmt.Sprintf("host-%02d.", i), float64(100-i), time.Second))
	}
	s := watching(overview(workers...))
	first := func() string {
		i, _ := lineWith(t, s.Frame(80, 24), "STATE")
		return s.Frame(80, 24)[i+1].String()[8:15]
	}
	shown := 0
	for _, line := range s.Frame(80, 24) {
		if len(line.String()) > 9 && line.String()[1:5] == "live" {
			shown++
		}
	}
	for _, step := range []struct {
		key  topview.Key
		want int
	}{
		{topview.KeyUp, 0}, {topview.KeyDown, 1}, {topview.KeyDown, 2}, {topview.KeyUp, 1},
		{topview.KeyPageDown, 1 + shown}, {topview.KeyPageUp, 1}, {topview.KeyPageUp, 0},
		{topview.KeyEnd, 50 - shown}, {topview.KeyDown, 50 - shown}, {topview.KeyUp, 49 - shown}, {topview.KeyHome, 0},
	} {
		if action := s.Press(step.key, 80, 24); action != topview.NoAction {
			t.Errorf("key %d asks for %d", step.key, action)
		}
		if want := fmt.Sprintf("host-%02d", step.want); first() != want {
			t.Fatalf("after key %d the first is %s, want %s:\n%s", step.key, first(), want, s.Frame(80, 24))
		}
	}
	s.Press(topview.KeyEnd, 80, 24)
	s.Saw(overview(workers[:2]...), noon) // the others are forgotten
	wantWords(t, s.Frame(80, 24), "host-00", "host-01")
}

func TestAPauseIsAskedForFirst(t *testing.T) {
	s := watching(overview())
	press := func(key topview.Key, want topview.Action) {
		t.Helper()
		if got := s.Press(key, 80, 24); got != want {
			t.Fatalf("key %d asks for %d, want %d", key, got, want)
		}
	}
	press(topview.KeyPause, topview.NoAction)
	wantWords(t, s.Frame(80, 24), "Pause the job", "[y/N]")
	press(topview.KeyQuit, topview.NoAction) // any other key is no
	wantWords(t, s.Frame(80, 24), "nothing was done")
	press(topview.KeyYes, topview.NoAction) // is not asked any more
	press(topview.KeyPause, topview.NoAction)
	press(topview.KeyYes, topview.Pause)

	o := overview()
	o.PausedBy = "bob"
	s.Saw(o, noon)
	press(topview.KeyPause, topview.NoAction)
	wantWords(t, s.Frame(80, 24), "Resume the job")
	press(topview.KeyYes, topview.Resume)
	press(topview.KeyPause, topview.NoAction)
	press(topview.KeyInterrupt, topview.Quit)
	s.Question = topview.NoQuestion

	s.Lost("gone", noon)
	press(topview.KeyPause, topview.NoAction)
	wantWords(t, s.Frame(80, 24), "the database does not answer")
	wantNone(t, s.Frame(80, 24), "[y/N]")
}

func TestKeysThatAskForSomething(t *testing.T) {
	s := watching(overview())
	if s.Press(topview.KeyErrors, 80, 24) != topview.ReadErrors {
		t.Error("e does not read the errors")
	}
	s.Errors.Reading = true
	if s.Press(topview.KeyErrors, 80, 24) != topview.NoAction {
		t.Error("errors are read twice at once")
	}
	s.Press(topview.KeyHelp, 80, 24)
	if s.Press(topview.KeyQuit, 80, 24) != topview.NoAction || s.Help {
		t.Error("a key does not just end the help")
	}
	if s.Press(topview.KeyQuit, 80, 24) != topview.Quit {
		t.Error("q does not quit")
	}
}
