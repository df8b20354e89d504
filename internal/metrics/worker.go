package metrics

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/windrow-go/windrow/internal/txn"
	"github.com/windrow-go/windrow/processor"
)

// Worker measures one worker process. Its methods may be called from several
// goroutines at once. A nil Worker measures nothing and costs nothing: what it wraps
// is returned as it is.
type Worker struct {
	registry  *prometheus.Registry
	conflicts *prometheus.CounterVec
	database  *prometheus.HistogramVec
	handler   *prometheus.HistogramVec
	stats     *statsCollector
	health    *health
}

// Buckets, in seconds. A check-out takes milliseconds, and tens of seconds when a
// server comes to its end; a row anything between a jq program and a night.
var (
	databaseBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	handlerBuckets  = []float64{.0001, .001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 900, 3600}
)

// New makes a Worker with a registry of its own.
func New() *Worker {
	w := &Worker{
		registry: prometheus.NewRegistry(),
		conflicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "windrow_conflicts_total",
			Help: "Transactions that lost a race and had to be done again, by what they were for and why they lost.",
		}, []string{"op", "reason"}),
		database: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "windrow_database_call_duration_seconds",
			Help:    "Time of the worker's calls of the database, retries after conflicts included, by what they were for and how they ended.",
			Buckets: databaseBuckets,
		}, []string{"op", "result"}),
		handler: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "windrow_handler_duration_seconds",
			Help:    "Time of the calls of the handler that have ended, each for one row or one batch, by how they ended.",
			Buckets: handlerBuckets,
		}, []string{"outcome"}),
		stats:  newStatsCollector(),
		health: newHealth(),
	}
	w.registry.MustRegister(w.conflicts, w.database, w.handler, w.stats,
		collectors.NewGoCollector(), collectors.NewBuildInfoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	w.beginAtZero()
	return w
}

// beginAtZero makes the series that alerts are about exist before their first event:
// a counter that appears with its first event shows no increase.
func (w *Worker) beginAtZero() {
	for _, op := range []string{"check_out", "check_in", "renew"} {
		for _, reason := range []txn.Reason{txn.ReasonSerialization, txn.ReasonDeadlock, txn.ReasonLockTimeout, txn.ReasonRolledBack, txn.ReasonBusy} {
			w.conflicts.WithLabelValues(op, string(reason))
		}
	}
	for _, op := range databaseOps {
		w.database.WithLabelValues(op, resultOK)
		w.database.WithLabelValues(op, resultError)
	}
	w.database.WithLabelValues("check_in", resultRefused)
	for _, outcome := range handlerOutcomes {
		w.handler.WithLabelValues(outcome)
	}
}

// Conflict counts a transaction that has to be done again; it is meant for
// checkout.Options.OnConflict, whose words it takes.
func (w *Worker) Conflict(op, reason string) {
	if w == nil {
		return
	}
	w.conflicts.WithLabelValues(strings.ReplaceAll(op, " ", "_"), reason).Inc()
}

// Database is what is watched of a store besides the calls that a worker makes.
type Database interface {
	// Ping returns nil if the database answers.
	Ping(ctx context.Context) error
	// Pool returns the connections, or nil.
	Pool() *sql.DB
}

// Database adds the statistics of the database's connections, and makes its Ping what
// readiness hangs on. It is to be called once. engine is the kind of database, in a
// word; explain words the errors of Ping for people.
func (w *Worker) Database(engine string, db Database, explain func(error) string) {
	if w == nil {
		return
	}
	if pool := db.Pool(); pool != nil {
		w.registry.MustRegister(collectors.NewDBStatsCollector(pool, engine))
	}
	w.health.watch(db, explain)
}

// Doing says what the process is at before and after it works rows, for the probes.
func (w *Worker) Doing(what string) {
	if w != nil {
		w.health.doing(what)
	}
}

// Working says that the processor whose Stats method is given works rows from now on;
// when ctx ends it is to stop, and grace is its Options.Grace. The function that is
// returned says that it has ended; its last numbers stay.
func (w *Worker) Working(ctx context.Context, stats func() processor.Stats, grace time.Duration) (ended func()) {
	if w == nil {
		return func() {}
	}
	w.stats.read.Store(&stats)
	return w.health.working(ctx, grace)
}
