package metrics_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windrow-go/windrow/internal/metrics"
	"github.com/windrow-go/windrow/internal/pgcluster"
	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
	"github.com/windrow-go/windrow/model"
	"github.com/windrow-go/windrow/processor"
)

// postgresURL is a fresh database's.
func postgresURL(t *testing.T) string { return pgtest.Database(t) }

func TestProbesFollowAWorkersLife(t *testing.T) {
	onEachEngine(t, func(t *testing.T, j *job) {
		j.load(1)
		j.wantProbe("/livez", 200, "alive: starting")
		j.wantProbe("/readyz", 503, "starting")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		began, let := make(chan struct{}), make(chan struct{})
		wait := j.work(ctx, handle(func(context.Context, model.Dataset) (any, error) {
			close(began)
			<-let
			return nil, nil
		}), processor.Options{Concurrency: 1})
		<-began
		j.wantProbe("/livez", 200, "alive: working")
		j.wantProbe("/readyz", 200, "ready")
		stop()
		eventually(t, "the stop is seen", func() bool { _, body := get(t, j.url+"/livez"); return body == "alive: stopping\n" })
		j.wantProbe("/readyz", 503, "the worker is stopping")
		close(let)
		check(t, wait())
		j.wantProbe("/livez", 503, "the worker has ended")
		j.wantProbe("/readyz", 503, "the worker has ended")
		j.watched.Doing("writing the results")
		j.wantProbe("/livez", 200, "alive: writing the results")
		j.wantProbe("/readyz", 503, "writing the results")
	})
}

func TestReadinessFollowsTheServer(t *testing.T) {
	cluster := pgtest.Cluster(t, pgcluster.Options{})
	j := onPostgres(t, cluster.URL("postgres"))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	wait := j.work(ctx, handle(func(context.Context, model.Dataset) (any, error) { return nil, nil }), processor.Options{})
	ready := func() int { status, _ := get(t, j.url+"/readyz"); return status }
	eventually(t, "it is ready", func() bool { return ready() == 200 })
	check(t, cluster.Kill())
	eventually(t, "it is not ready", func() bool { return ready() == 503 })
	j.wantProbe("/readyz", 503, "the database does not answer: ")
	j.wantProbe("/livez", 200, "alive: working")
	check(t, cluster.Restart(t.Context()))
	eventually(t, "it is ready again", func() bool { return ready() == 200 })
	stop()
	check(t, wait())
}

// slow is a database that does not answer before a ping's context ends, and counts
// the pings.
type slow struct {
	metrics.Database
	pings atomic.Int64
}

func (s *slow) Ping(ctx context.Context) error {
	s.pings.Add(1)
	<-ctx.Done()
	return ctx.Err()
}

func TestADatabaseThatIsSilentIsNotWaitedForAndNotAskedByEveryProbe(t *testing.T) {
	j := onSQLite(t)
	silent := &slow{Database: j.store}
	w := metrics.New()
	w.Database("sqlite", silent, error.Error)
	j.url = serve(t, w)
	defer w.Working(t.Context(), func() processor.Stats { return processor.Stats{} }, 0)()
	answers := make(chan string)
	const probes = 20
	for range probes {
		go func() {
			resp, err := client.Get(j.url + "/readyz")
			if err != nil {
				answers <- err.Error()
				return
			}
			resp.Body.Close()
			answers <- resp.Status
		}()
	}
	for range probes {
		equal(t, "answer", <-answers, "503 Service Unavailable")
	}
	j.wantProbe("/readyz", 503, "no word from it within 2s")
	if n := silent.pings.Load(); n > probes/4 {
		t.Errorf("%d probes asked the database %d times", probes+1, n)
	}
}

func TestAWorkerThatDoesNotEndIsNotAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := metrics.New()
		ctx, stop := context.WithCancel(t.Context())
		defer w.Working(ctx, func() processor.Stats { return processor.Stats{} }, 25*time.Second)()
		livez := func() (int, string) {
			synctest.Wait()
			answer := httptest.NewRecorder()
			w.Pages().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/livez", nil))
			return answer.Code, strings.TrimSpace(answer.Body.String())
		}
		time.Sleep(24 * time.Hour)
		if code, says := livez(); code != 200 {
			t.Fatalf("after a day: %d %s", code, says)
		}
		stop()
		time.Sleep(84 * time.Second)
		if code, says := livez(); code != 200 {
			t.Errorf("within its time to stop: %d %s", code, says)
		}
		time.Sleep(2 * time.Second)
		if code, says := livez(); code != 503 || says != "the worker was told to stop 1m26s ago and has not ended" {
			t.Errorf("after its time to stop: %d %s", code, says)
		}
	})
}
