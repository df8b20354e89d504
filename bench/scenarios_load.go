package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/job"
	"github.com/windrow-go/windrow/internal/pgcluster"
)

const subjectCopy = `psql \copy`

// loads loads the same rows from each format, and by psql's \copy into the same
// table with the same indexes.
func loads(b *Bench) []plan {
	own := b.parameters(Parameters{Rows: 500_000, Processes: 1, Concurrency: 1})
	var plans []plan
	add := func(subject, label string, load func(ctx context.Context, p Parameters) error) {
		p := plan{Result: Result{Subject: subject, Case: label, Parameters: own}}
		p.fill = func(ctx context.Context) error { return b.empty(ctx) }
		p.measure = func(ctx context.Context, p plan, _ int64) (Result, error) { return b.timeLoad(ctx, p, load) }
		plans = append(plans, p)
	}
	for _, f := range formats {
		add(subjectWindrow, f.name, func(ctx context.Context, p Parameters) error { return b.load(ctx, f, p, "") })
	}
	add(subjectWindrow, "JSON Lines, with keys", func(ctx context.Context, p Parameters) error { return b.load(ctx, formats[0], p, "i") })
	add(subjectCopy, "JSON Lines", b.copy)
	return plans
}

func (b *Bench) empty(ctx context.Context) error {
	for _, table := range []string{"datasets", "dataset_keys", "loads"} {
		if err := b.target.exec(ctx, `TRUNCATE `+b.target.schema+`.`+table); err != nil {
			return err
		}
	}
	return b.target.exec(ctx, `CHECKPOINT`)
}

// timeLoad writes the file first, which is not timed.
func (b *Bench) timeLoad(ctx context.Context, p plan, load func(context.Context, Parameters) error) (Result, error) {
	r := p.Result
	r.Machine, r.Began = ThisMachine(), time.Now().UTC()
	var err error
	if r.Server, err = b.target.server(ctx); err != nil {
		return r, err
	}
	for _, f := range formats {
		if err := f.writeFile(b.file(f), p.Parameters); err != nil {
			return r, err
		}
	}
	before, err := b.target.usage(ctx)
	if err != nil {
		return r, err
	}
	stop := b.progress(fmt.Sprintf("load %s %s", r.Subject, r.Case), 0, func() int64 { return 0 })
	began := time.Now()
	err = load(ctx, p.Parameters)
	r.Seconds = time.Since(began).Seconds()
	stop()
	if err != nil {
		return r, err
	}
	if err := b.target.db.WithContext(ctx).Raw(`SELECT count(*) FROM ` + b.target.table()).Scan(&r.Done).Error; err != nil {
		return r, err
	}
	r.RowsPerSecond = float64(r.Done) / r.Seconds
	if r.Lost = int64(p.Parameters.Rows) - r.Done; r.Lost != 0 {
		return r, &Unsound{Result: r}
	}
	return r, b.account(ctx, &r, before)
}

func (b *Bench) file(f format) string { return filepath.Join(b.target.folder, f.file) }

func (b *Bench) load(ctx context.Context, f format, _ Parameters, key string) error {
	s, err := checkout.OpenPostgres(ctx, b.target.address, checkout.Options{Schema: b.target.schema})
	if err != nil {
		return err
	}
	defer s.Close()
	loader := &job.Loader{Store: s, Source: f.name, Files: []string{b.file(f)}, Key: key}
	_, err = loader.Run(ctx)
	return err
}

// copy is psql's \copy of a file of JSON Lines: none of the rows needs escaping.
func (b *Bench) copy(ctx context.Context, _ Parameters) error {
	psql, err := psqlProgram(ctx)
	if err != nil {
		return err
	}
	script := fmt.Sprintf(`\copy %s (data) FROM '%s'`, b.target.table(), b.file(formats[0]))
	config, err := pgx.ParseConfig(b.target.address)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, psql, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", script)
	cmd.Env = append(os.Environ(), // not in the arguments, because of the password
		"PGHOST="+config.Host, fmt.Sprintf("PGPORT=%d", config.Port), "PGUSER="+config.User,
		"PGPASSWORD="+config.Password, "PGDATABASE="+config.Database)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf(`psql \copy: %w: %s`, err, out)
	}
	return nil
}

func psqlProgram(ctx context.Context) (string, error) {
	if path, err := exec.LookPath("psql"); err == nil {
		return path, nil
	}
	folder, err := pgcluster.Programs(ctx)
	if err != nil {
		return "", fmt.Errorf("psql is not to be found: %w", err)
	}
	return filepath.Join(folder, "psql"), nil
}
