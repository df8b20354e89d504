package metrics_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"go.uber.org/zap"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/internal/metrics"
	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
	"github.com/windrow-go/windrow/migrations"
	"github.com/windrow-go/windrow/processor"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

// store is what both engines offer.
type store interface {
	processor.Store
	metrics.Database
	BeginLoad(ctx context.Context, source string, after int64) (checkout.Load, error)
	Append(ctx context.Context, load *checkout.Load, c checkout.Chunk) error
	Close() error
}

// job is a job whose worker is watched: what a command puts together.
type job struct {
	t       *testing.T
	watched *metrics.Worker
	store   store
	table   string
	url     string // where it is watched
}

func onEachEngine(t *testing.T, test func(t *testing.T, j *job)) {
	t.Run("postgres", func(t *testing.T) { test(t, onPostgres(t, pgtest.Database(t))) })
	t.Run("sqlite", func(t *testing.T) { test(t, onSQLite(t)) })
}

func onPostgres(t *testing.T, url string) *job {
	t.Helper()
	db, err := database.OpenPostgres(url, nil)
	check(t, err)
	migrator, err := migrations.Postgres(db, "")
	check(t, err)
	_, err = migrator.Up(t.Context())
	check(t, err)
	check(t, database.Close(db))
	j := &job{t: t, watched: metrics.New(), table: "windrow.datasets"}
	s, err := checkout.OpenPostgres(t.Context(), url, checkout.Options{OnConflict: j.watched.Conflict})
	check(t, err)
	return j.open("postgres", s)
}

func onSQLite(t *testing.T) *job {
	t.Helper()
	j := &job{t: t, watched: metrics.New(), table: "datasets"}
	path := filepath.Join(t.TempDir(), "job.db")
	s, err := checkout.OpenSQLite(t.Context(), path, true, checkout.Options{OnConflict: j.watched.Conflict})
	check(t, err)
	return j.open("sqlite", s)
}

// open takes a store in use, and begins to serve.
func (j *job) open(engine string, s store) *job {
	j.t.Helper()
	j.store = s
	j.t.Cleanup(func() { check(j.t, s.Close()) })
	j.watched.Database(engine, s, error.Error)
	j.url = serve(j.t, j.watched)
	return j
}

// serve serves until the test ends, and returns where.
func serve(t *testing.T, w *metrics.Worker) string {
	t.Helper()
	listener, err := metrics.Listen(t.Context(), "127.0.0.1:0")
	check(t, err)
	server := metrics.Serve(listener, w, zap.NewNop())
	t.Cleanup(server.Close)
	return "http://" + listener.Addr().String()
}

// load adds n rows {"n": 1…n}.
func (j *job) load(n int) {
	j.t.Helper()
	rows := make([]checkout.NewRow, n)
	for i := range rows {
		rows[i].Data = json.RawMessage(fmt.Sprintf(`{"n": %d}`, i+1))
	}
	load, err := j.store.BeginLoad(j.t.Context(), "test", 0)
	check(j.t, err)
	check(j.t, j.store.Append(j.t.Context(), &load, checkout.Chunk{Rows: rows, Records: int64(n), Last: true}))
}

// work starts a worker. What is returned waits for its end and returns its error.
func (j *job) work(ctx context.Context, h processor.Handler, opts processor.Options) (wait func() error) {
	j.t.Helper()
	p := processor.New(j.watched.Store(j.store), j.watched.Handler(h), opts)
	ended := j.watched.Working(ctx, p.Stats, opts.Grace)
	result := make(chan error, 1)
	go func() {
		err := p.Run(ctx)
		ended()
		result <- err
	}()
	return func() error {
		j.t.Helper()
		select {
		case err := <-result:
			return err
		case <-time.After(patience):
			j.t.Fatalf("the worker has not ended: %+v", p.Stats())
			return nil
		}
	}
}

// patience is how long anything may take before the test gives up on it.
const patience = time.Minute

// query returns one number of the job's own table.
func (j *job) query(what, condition string) float64 {
	j.t.Helper()
	var n sql.NullFloat64
	err := j.store.Pool().QueryRowContext(j.t.Context(), "SELECT "+what+" FROM "+j.table+" WHERE "+condition).Scan(&n)
	check(j.t, err)
	return n.Float64
}

func (j *job) exec(statements ...string) {
	j.t.Helper()
	for _, statement := range statements {
		_, err := j.store.Pool().ExecContext(j.t.Context(), statement)
		check(j.t, err)
	}
}

// scrape is what /metrics answers: a series as it is written, and its value.
type scrape map[string]float64

// scrape asks for the metrics, which must be well made.
func (j *job) scrape() scrape {
	j.t.Helper()
	status, body := get(j.t, j.url+"/metrics")
	equal(j.t, "status", status, http.StatusOK)
	problems, err := promlint.New(strings.NewReader(body)).Lint()
	check(j.t, err)
	for _, p := range problems {
		j.t.Errorf("%s: %s", p.Metric, p.Text)
	}
	series := scrape{}
	for line := range strings.Lines(body) {
		name, value, found := strings.Cut(strings.TrimSpace(line), " ")
		if !found || name == "#" {
			continue
		}
		if i := strings.LastIndex(line, "} "); i >= 0 { // a label may have spaces
			name, value = line[:i+1], strings.TrimSpace(line[i+2:])
		}
		series[name], err = strconv.ParseFloat(value, 64)
		check(j.t, err)
	}
	return series
}

// wants compares series with what they should be.
func (s scrape) wants(t *testing.T, want map[string]float64) {
	t.Helper()
	for name, value := range want {
		if got, there := s[name]; !there || got != value {
			t.Errorf("%s is %v (there: %t), want %v", name, got, there, value)
		}
	}
}

// sum adds up the series of a metric that have all of these labels.
func (s scrape) sum(metric string, labels ...string) (sum float64) {
	for name, value := range s {
		if !strings.HasPrefix(name, metric+"{") {
			continue
		}
		all := true
		for _, label := range labels {
			all = all && strings.Contains(name, label)
		}
		if all {
			sum += value
		}
	}
	return sum
}

// client keeps no connection: the tests look for what is left behind.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	resp, err := client.Get(url)
	check(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	check(t, err)
	return resp.StatusCode, string(text)
}

// wantProbe checks a probe's status and that its one line says this.
func (j *job) wantProbe(path string, status int, says string) {
	j.t.Helper()
	got, body := get(j.t, j.url+path)
	if got != status || !strings.Contains(body, says) || strings.Count(body, "\n") != 1 {
		j.t.Errorf("%s: %d %q, want %d and one line that says %q", path, got, body, status, says)
	}
}

// eventually waits for what another process does; there is nothing to wait on.
func eventually(t *testing.T, what string, yes func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !yes() {
		select {
		case <-deadline:
			t.Fatalf("not within %v: %s", patience, what)
		case <-tick.C:
		}
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}
