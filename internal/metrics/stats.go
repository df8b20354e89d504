package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windrow-go/windrow/processor"
)

// statsCollector exports a processor's Stats, read anew for each scrape: what is
// counted already is not counted again.
type statsCollector struct {
	read       atomic.Pointer[func() processor.Stats] // nil: no processor yet
	checkedOut *prometheus.Desc
	rows       *prometheus.Desc
	held       *prometheus.Desc
	stuck      *prometheus.Desc
	atRisk     *prometheus.Desc
	trouble    *prometheus.Desc
	cost       *prometheus.Desc
}

func newStatsCollector() *statsCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &statsCollector{
		checkedOut: desc("windrow_rows_checked_out_total", "Rows that this worker has checked out."),
		rows: desc("windrow_rows_total", "Rows that this worker no longer holds, by what became of them: done, failed for good, "+
			"given back for another try (retried) or without one charged (released), or lost to a newer claim.", "outcome"),
		held: desc("windrow_rows_held", "Rows that this worker holds: waiting for a free slot (buffered), in the handler (running), "+
			"or with an outcome that is not stored yet (finished).", "state"),
		stuck:   desc("windrow_handlers_stuck", "Calls of the handler that ignore their cancel and are no longer waited for."),
		atRisk:  desc("windrow_leases_at_risk", "Rows held of whose lease less than a third is left: none while renewals get through."),
		trouble: desc("windrow_handler_trouble", "1 while this worker is slowed down because its handler can't serve or fails row after row, else 0."),
		cost:    desc("windrow_handler_cost_total", "Cost of the calls of this worker's handler, in the unit of their answers."),
	}
}

// Describe implements prometheus.Collector.
func (c *statsCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.checkedOut, c.rows, c.held, c.stuck, c.atRisk, c.trouble, c.cost} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (c *statsCollector) Collect(metrics chan<- prometheus.Metric) {
	var s processor.Stats
	if read := c.read.Load(); read != nil {
		s = (*read)()
	}
	counter := func(d *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, labels...)
	}
	gauge := func(d *prometheus.Desc, value int, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	counter(c.checkedOut, float64(s.Claimed))
	counter(c.rows, float64(s.Done), "done")
	counter(c.rows, float64(s.Failed), "failed")
	counter(c.rows, float64(s.Retried), "retried")
	counter(c.rows, float64(s.Released), "released")
	counter(c.rows, float64(s.Lost), "lost")
	gauge(c.held, s.Buffered, "buffered")
	gauge(c.held, max(s.Busy-s.Stuck, 0), "running")
	gauge(c.held, s.Finished, "finished")
	gauge(c.stuck, s.Stuck)
	gauge(c.atRisk, s.AtRisk)
	trouble := 0
	if s.Trouble != "" {
		trouble = 1
	}
	gauge(c.trouble, trouble)
	counter(c.cost, s.Cost)
}
