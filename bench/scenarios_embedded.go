package bench

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/database"
)

// sqlite: one process on the embedded engine.
func sqlite(b *Bench) []plan {
	var plans []plan
	for _, subject := range []string{subjectSQLite, subjectBareSQLite} {
		own := Parameters{Rows: 300_000, Processes: 1, Concurrency: 40}
		p := plan{Result: Result{Subject: subject, Parameters: b.parameters(own)}}
		if subject == subjectBareSQLite {
			p.Parameters.Concurrency = 1
		}
		p.fill = func(ctx context.Context) error { return b.fillSQLite(ctx, p.Parameters) }
		p.measure = b.runSQLite
		plans = append(plans, p)
	}
	return plans
}

func (b *Bench) fillSQLite(ctx context.Context, p Parameters) error {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(b.target.sqliteFile() + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	s, err := checkout.OpenSQLite(ctx, b.target.sqliteFile(), true, checkout.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	return addRows(ctx, s, p)
}

func (b *Bench) runSQLite(ctx context.Context, p plan, _ int64) (Result, error) {
	r := p.Result
	r.Machine, r.Began = ThisMachine(), time.Now().UTC()
	f, err := startFleet(ctx, []task{{Subject: r.Subject, Address: b.target.sqliteFile(), Concurrency: r.Parameters.Concurrency, Batch: r.Parameters.Batch}})
	if err != nil {
		return r, err
	}
	stop := b.progress(r.Scenario+" "+r.Subject, int64(r.Parameters.Rows), f.finished)
	err = f.run(ctx, nil)
	stop()
	if err != nil {
		return r, err
	}
	tallyOf(f.workers).fillIn(&r)
	cpu, memory := f.usage()
	r.ClientMemory = memory
	r.ClientMicros = float64(cpu.Microseconds()) / float64(max(r.Done, 1))
	return r, b.verifySQLite(ctx, &r)
}

func (b *Bench) verifySQLite(ctx context.Context, r *Result) error {
	db, err := database.OpenSQLite(b.target.sqliteFile(), false, nil)
	if err != nil {
		return err
	}
	defer database.Close(db)
	r.Server = Server{Engine: "SQLite", Settings: map[string]string{}}
	if err := db.Raw(`SELECT sqlite_version()`).Scan(&r.Server.Version).Error; err != nil {
		return err
	}
	for _, name := range []string{"journal_mode", "synchronous"} {
		var value string
		if err := db.Raw(`PRAGMA ` + name).Scan(&value).Error; err != nil {
			return err
		}
		r.Server.Settings[name] = value
	}
	var found struct{ Finished, Doubled int64 }
	err = db.WithContext(ctx).Raw(`SELECT count(*) AS finished, count(*) FILTER (WHERE checkouts <> 1) AS doubled
		FROM datasets WHERE is_processed AND result IS NOT NULL`).Scan(&found).Error
	if err != nil {
		return err
	}
	r.Lost, r.Doubled = int64(r.Parameters.Rows)-found.Finished, found.Doubled
	if r.Lost+r.Doubled > 0 {
		return &Unsound{Result: *r}
	}
	return nil
}
