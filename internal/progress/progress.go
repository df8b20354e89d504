// Package progress shows how far long work has come: as a bar with rate and ETA
// on a terminal, as a line in the log now and then elsewhere.
package progress

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"go.uber.org/zap"
)

// lineEvery is the least time between two lines where there is no terminal. While
// nothing gets done there is none.
const lineEvery = 30 * time.Second

// Display shows one bar after another. It is also the writer that a log should
// use meanwhile, so that its lines stand above the bar.
type Display struct {
	out   io.Writer
	bars  bool
	log   *zap.Logger
	mu    sync.Mutex
	above io.Writer // where a bar is shown, else nil
}

// NewDisplay draws bars on out if bars is set, which asks for a terminal.
// Otherwise SetLog's log gets lines.
func NewDisplay(out io.Writer, bars bool) *Display {
	return &Display{out: out, bars: bars, log: zap.NewNop()}
}

// SetLog names the log for the lines where there is no terminal.
func (d *Display) SetLog(log *zap.Logger) { d.log = log }

// Write puts p above the bar, if one is shown.
func (d *Display) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.above != nil {
		return d.above.Write(p)
	}
	return d.out.Write(p)
}

// Bar is one stretch of work.
type Bar struct {
	display *Display
	what    string
	total   atomic.Int64
	done    atomic.Int64
	began   time.Time
	stop    chan struct{}
	stopped sync.WaitGroup
}

// Begin shows a stretch of work, named what, with total rows to do; 0 if that
// is not known. read is asked for the rows done so far and, if it changes, the
// new total. The caller ends it with End before it begins another.
func (d *Display) Begin(what string, total int64, read func() (done, total int64)) *Bar {
	b := &Bar{display: d, what: what, began: time.Now(), stop: make(chan struct{})}
	b.total.Store(total)
	b.stopped.Add(1)
	if d.bars {
		go b.draw(read)
	} else {
		go b.write(read)
	}
	return b
}

// End takes the bar away.
func (b *Bar) End() {
	close(b.stop)
	b.stopped.Wait()
}

func (b *Bar) look(read func() (int64, int64)) {
	done, total := read()
	b.done.Store(done)
	if total > 0 {
		b.total.Store(total)
	}
}

func (b *Bar) write(read func() (int64, int64)) {
	defer b.stopped.Done()
	tick := time.NewTicker(lineEvery)
	defer tick.Stop()
	said := int64(-1)
	for {
		select {
		case <-b.stop:
			return
		case <-tick.C:
		}
		if b.look(read); b.done.Load() == said {
			continue
		}
		said = b.done.Load()
		b.display.log.Info(b.what,
			zap.Int64("rows", b.done.Load()),
			zap.Int64("of", b.total.Load()),
			zap.Int64("rows_per_second", int64(b.rate())),
			zap.String("left", b.left()))
	}
}

// rate is the mean since the beginning, rows per second.
func (b *Bar) rate() float64 {
	return float64(b.done.Load()) / max(time.Since(b.began).Seconds(), 1e-3)
}

// left is the time still to go at that rate, or "?".
func (b *Bar) left() string {
	total, done, rate := b.total.Load(), b.done.Load(), b.rate()
	if total == 0 || rate <= 0 {
		return "?"
	}
	return (time.Duration(float64(max(total-done, 0))/rate) * time.Second).String()
}

func (b *Bar) draw(read func() (int64, int64)) {
	defer b.stopped.Done()
	container := mpb.New(toTerminal(b.display.out), mpb.WithWidth(40), mpb.WithRefreshRate(200*time.Millisecond))
	bar := container.AddBar(b.total.Load(),
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(b.what+" ")),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return b.text() })))
	b.display.setAbove(container)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-b.stop:
			bar.Abort(true)
			container.Wait()
			b.display.setAbove(nil)
			return
		case <-tick.C:
		}
		b.look(read)
		// One more than there is: a full bar would take itself away.
		bar.SetTotal(max(b.total.Load(), b.done.Load())+1, false)
		bar.SetCurrent(b.done.Load())
	}
}

func (d *Display) setAbove(w io.Writer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.above = w
}

// text is what stands behind the bar: 1,234 of 5,678 · 910/s · 5s left.
func (b *Bar) text() string {
	s := " " + humanize.Comma(b.done.Load())
	if total := b.total.Load(); total > 0 {
		s += " of " + humanize.Comma(total)
	}
	s += " · " + humanize.Comma(int64(b.rate())) + "/s"
	if left := b.left(); left != "?" {
		s += " · " + left + " left"
	}
	return s
}
