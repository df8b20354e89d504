package topview

import (
	"math"
	"time"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/model"
)

const (
	// keptRates is for how many seconds rates are remembered.
	keptRates = 300
	// nowSeconds is over how many seconds the present rate is taken: workers check in
	// by batches.
	nowSeconds = 5
)

// Rates are the rows done or failed in each second of the last minutes, by the
// database's clock.
type Rates struct {
	perSecond []float64 // the latest last
	origin    time.Time // where seconds are counted from
	second    int64     // that of the latest
	at        time.Time // when processed was seen; zero: never
	processed int64
}

// Add takes a look at the job in. Rows that were put back count as no rows; where the
// counts are estimates, which differ by chance, the mean of the last minute is taken.
func (r *Rates) Add(o checkout.Overview) {
	processed := o.Counts[model.Done] + o.Counts[model.Failed]
	if r.at.IsZero() || o.Now.Before(r.at) {
		// Half a second apart from where looks are expected: these are late by some
		// milliseconds more or less.
		r.origin, r.second = o.Now.Add(-time.Second/2), 0
		r.at, r.processed = o.Now, processed
		return
	}
	second := int64(o.Now.Sub(r.origin) / time.Second)
	if second == r.second {
		return // too early for another: the next look takes it in
	}
	rate := max(0, float64(processed-r.processed)) / o.Now.Sub(r.at).Seconds()
	if o.IsEstimate(model.Done) || o.IsEstimate(model.Failed) {
		rate = o.Rate
	}
	for range min(second-r.second, keptRates) {
		r.perSecond = append(r.perSecond, rate)
	}
	if extra := len(r.perSecond) - keptRates; extra > 0 {
		r.perSecond = append(r.perSecond[:0], r.perSecond[extra:]...)
	}
	r.second, r.at, r.processed = second, o.Now, processed
}

// Now is the rate of the last seconds; negative if there is none yet.
func (r *Rates) Now() float64 {
	return mean(r.perSecond[max(0, len(r.perSecond)-nowSeconds):])
}

// Bars divides the time that is remembered into n stretches, the latest last, with
// the mean rate of each; negative: nothing is known of it. A stretch begins at a whole
// multiple of its length, so that a mean stays as it is when the time goes on.
func (r *Rates) Bars(n int) []float64 {
	bars := make([]float64, max(n, 0))
	if n <= 0 {
		return bars
	}
	length := int64(math.Ceil(keptRates / float64(n)))
	first := r.second - int64(len(r.perSecond)) + 1 // the second of perSecond[0]
	for i := range bars {
		begin := (r.second/length - int64(n-1-i)) * length
		from := min(max(begin-first, 0), int64(len(r.perSecond)))
		to := min(max(begin+length-first, 0), int64(len(r.perSecond)))
		bars[i] = mean(r.perSecond[from:to])
	}
	return bars
}

// mean is that of some rates; negative if there are none.
func mean(rates []float64) float64 {
	if len(rates) == 0 {
		return -1
	}
	sum := 0.0
	for _, rate := range rates {
		sum += rate
	}
	return sum / float64(len(rates))
}
