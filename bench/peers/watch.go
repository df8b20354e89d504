package main

import (
	"context"
	"math"
	"time"
)

const (
	// lookLeast and lookMost are the bounds of the time between two looks at the
	// database. A look is a count of the peer's table.
	lookLeast = 5 * time.Millisecond
	lookMost  = time.Second
	// stallTime is after how long without a finished job a run is given up.
	stallTime = 90 * time.Second
)

// look is what the database showed.
type look struct {
	after time.Duration // since the begin of the measurement
	done  int64
}

// watch looks at the database until it shows all rows as finished, or none for too
// long. It looks once a second, and more and more often towards the end, so as not
// to disturb and yet to see the end in time. costs is the time spent on looking.
func watch(ctx context.Context, began time.Time, rows int64, left func(context.Context) (int64, error)) (looks []look, costs time.Duration, err error) {
	looks = []look{{}}
	progress := began
	for {
		select {
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		case <-time.After(nextLook(looks, rows, time.Since(progress))):
		}
		asked := time.Now()
		n, err := left(ctx)
		if err != nil {
			return nil, 0, err
		}
		costs += time.Since(asked)
		now := look{after: asked.Sub(began), done: rows - n}
		if now.done > looks[len(looks)-1].done {
			progress = asked
		}
		looks = append(looks, now)
		if n == 0 || time.Since(progress) > stallTime {
			return looks, costs, nil
		}
	}
}

// nextLook is how long to wait: half of the time that the rest will take at the
// pace so far, and longer when nothing happens.
func nextLook(looks []look, rows int64, stalled time.Duration) time.Duration {
	last := looks[len(looks)-1]
	wait := 4 * lookLeast
	if last.done > 0 {
		rest := float64(rows-last.done) / float64(last.done)
		wait = time.Duration(rest * float64(last.after) / 2)
	}
	return min(max(wait, stalled/20, lookLeast), lookMost)
}

// perSecond is how many rows were finished in each second, from first to last;
// between two looks they are taken to have come evenly.
func perSecond(looks []look) []int64 {
	last := looks[len(looks)-1]
	var series []int64
	var before int64
	for end := time.Second; ; end += time.Second {
		done := doneAt(looks, end)
		series = append(series, done-before)
		before = done
		if end >= last.after {
			return series
		}
	}
}

func doneAt(looks []look, at time.Duration) int64 {
	for i := 1; i < len(looks); i++ {
		a, b := looks[i-1], looks[i]
		if at > b.after {
			continue
		}
		share := float64(at-a.after) / float64(b.after-a.after)
		return a.done + int64(math.Round(share*float64(b.done-a.done)))
	}
	return looks[len(looks)-1].done
}

// timeOf is when a number of rows were finished.
func timeOf(looks []look, done float64) time.Duration {
	for i := 1; i < len(looks); i++ {
		a, b := looks[i-1], looks[i]
		if float64(b.done) < done || b.done == a.done {
			continue
		}
		share := (done - float64(a.done)) / float64(b.done-a.done)
		return a.after + time.Duration(share*float64(b.after-a.after))
	}
	return looks[len(looks)-1].after
}

// pace is the rows per second between two shares of the rows, 0.75 to 1 for the
// last quarter.
func pace(looks []look, from, to float64) float64 {
	done := float64(looks[len(looks)-1].done)
	took := timeOf(looks, to*done) - timeOf(looks, from*done)
	if took <= 0 {
		return 0
	}
	return (to - from) * done / took.Seconds()
}
