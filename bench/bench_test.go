package bench_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/internal/pgcluster"
	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
	"github.com/windrow-go/windrow/migrations"
)

// settings are those of the measurements in the README.
var settings = map[string]string{"shared_buffers": "1GB", "max_wal_size": "8GB"}

// newJob makes an empty job on a private server with fsync on.
func newJob(b *testing.B) (url string, db *gorm.DB) {
	b.Helper()
	cluster := pgtest.Cluster(b, pgcluster.Options{Fsync: true, Settings: settings})
	url = cluster.URL("postgres")
	db, err := database.OpenPostgres(url, nil)
	check(b, err)
	b.Cleanup(func() { check(b, database.Close(db)) })
	migrator, err := migrations.Postgres(db, "")
	check(b, err)
	_, err = migrator.Up(b.Context())
	check(b, err)
	return url, db
}

// BenchmarkDrain has a fleet of worker processes work a whole table with a
// handler that does nothing.
func BenchmarkDrain(b *testing.B) {
	url, db := newJob(b)
	for b.Loop() {
		b.StopTimer()
		fill(b, db)
		b.StartTimer()
		began := time.Now()
		fleet := runFleet(b, url)
		took := time.Since(began)
		var done, conflicts int64
		for _, r := range fleet {
			done += r.Done
			for reason, n := range r.Conflicts {
				b.Logf("conflicts, %s: %d", reason, n)
				conflicts += n
			}
			if r.Lost > 0 {
				b.Fatalf("%d rows were lost", r.Lost)
			}
		}
		if done != int64(*rows) {
			b.Fatalf("%d rows were done, not %d", done, *rows)
		}
		b.ReportMetric(float64(done)/took.Seconds(), "rows/s")
		b.ReportMetric(float64(conflicts), "conflicts")
		b.Logf("%d rows, %d processes of %d slots: %.1f s", *rows, *processes, *slots, took.Seconds())
	}
}

func fill(b *testing.B, db *gorm.DB) {
	b.Helper()
	check(b, db.Exec(`TRUNCATE windrow.datasets`).Error)
	check(b, db.Exec(fmt.Sprintf(`INSERT INTO windrow.datasets (data)
		SELECT jsonb_build_object('i', i, 'pad', repeat('x', %d)) FROM generate_series(1, %d) AS i`, *payload, *rows)).Error)
	check(b, db.Exec(`ANALYZE windrow.datasets`).Error)
	check(b, db.Exec(`CHECKPOINT`).Error)
}

func runFleet(b *testing.B, url string) []report {
	b.Helper()
	outputs := make([]bytes.Buffer, *processes)
	commands := make([]*exec.Cmd, *processes)
	for i := range commands {
		cmd := exec.CommandContext(b.Context(), os.Args[0], os.Args[1:]...)
		cmd.Env = append(os.Environ(), workerVariable+"="+url)
		cmd.Stdout, cmd.Stderr = &outputs[i], os.Stderr
		check(b, cmd.Start())
		commands[i] = cmd
	}
	reports := make([]report, *processes)
	for i, cmd := range commands {
		check(b, cmd.Wait())
		check(b, json.Unmarshal(outputs[i].Bytes(), &reports[i]))
	}
	return reports
}

// BenchmarkLoad loads rows without and with keys.
func BenchmarkLoad(b *testing.B) {
	for _, keyed := range []bool{false, true} {
		b.Run(map[bool]string{false: "plain", true: "keyed"}[keyed], func(b *testing.B) {
			url, _ := newJob(b)
			store, err := checkout.OpenPostgres(b.Context(), url, checkout.Options{})
			check(b, err)
			b.Cleanup(func() { check(b, store.Close()) })
			for b.Loop() {
				began := time.Now()
				load(b, store, keyed)
				b.ReportMetric(float64(*rows)/time.Since(began).Seconds(), "rows/s")
			}
		})
	}
}

func load(b *testing.B, store *checkout.Postgres, keyed bool) {
	b.Helper()
	pad := strings.Repeat("x", *payload)
	latest, err := store.LatestLoad(b.Context(), "bench")
	if !errors.Is(err, checkout.ErrNotFound) {
		check(b, err)
	}
	load, err := store.BeginLoad(b.Context(), "bench", latest.ID)
	check(b, err)
	var chunk checkout.Chunk
	for i := range *rows {
		row := checkout.NewRow{Data: json.RawMessage(fmt.Sprintf(`{"i": %d, "pad": "%s"}`, i, pad))}
		if keyed {
			key := fmt.Sprintf("row-%d-%d", load.ID, i)
			row.Key = &key
		}
		chunk.Rows = append(chunk.Rows, row)
		if len(chunk.Rows) == 10_000 || i == *rows-1 {
			chunk.Records = int64(i + 1)
			check(b, store.Append(context.Background(), &load, chunk))
			chunk.Rows = chunk.Rows[:0]
		}
	}
}

func check(b testing.TB, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
