package bench

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/internal/pgcluster"
	"github.com/windrow-go/windrow/migrations"
)

// target is the server that is measured: one of its own, or a given one, on which
// it keeps to a schema of its own.
type target struct {
	address string
	schema  string
	cluster *pgcluster.Cluster // nil: a given server
	db      *gorm.DB
	folder  string // for SQLite files
}

// Settings are those of a private server, stated in every result. The rest is as
// PostgreSQL comes; fsync is on.
var Settings = map[string]string{
	"shared_buffers":  "4GB",
	"max_wal_size":    "16GB",
	"max_connections": "400",
}

// openTarget starts a private server, or takes the one at address.
func openTarget(ctx context.Context, address string) (_ *target, err error) {
	t := &target{address: address, schema: "windrow_bench_" + randomName()}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close(context.WithoutCancel(ctx)))
		}
	}()
	if t.folder, err = os.MkdirTemp("", "windrow-bench-"); err != nil {
		return nil, err
	}
	if address == "" {
		if t.cluster, err = pgcluster.Start(ctx, pgcluster.Options{Fsync: true, Settings: Settings}); err != nil {
			return nil, err
		}
		t.address = t.cluster.URL("postgres")
	}
	if t.db, err = database.OpenPostgres(t.address, nil); err != nil {
		return nil, err
	}
	migrator, err := migrations.Postgres(t.db, t.schema)
	if err != nil {
		return nil, err
	}
	if _, err = migrator.Up(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

// openFolder is for what needs no server.
func openFolder(context.Context, string) (*target, error) {
	folder, err := os.MkdirTemp("", "windrow-bench-")
	return &target{folder: folder}, err
}

func randomName() string {
	var unique [4]byte
	_, _ = rand.Read(unique[:]) // never fails
	return hex.EncodeToString(unique[:])
}

// close removes whatever was made.
func (t *target) close(ctx context.Context) error {
	var errs []error
	if t.db != nil {
		if t.cluster == nil {
			errs = append(errs, t.exec(ctx, `DROP SCHEMA IF EXISTS `+pgx.Identifier{t.schema}.Sanitize()+` CASCADE`))
		}
		errs = append(errs, database.Close(t.db))
	}
	if t.cluster != nil {
		errs = append(errs, t.cluster.Stop())
	}
	if t.folder != "" {
		errs = append(errs, os.RemoveAll(t.folder))
	}
	return errors.Join(errs...)
}

func (t *target) exec(ctx context.Context, statement string, args ...any) error {
	return t.db.WithContext(ctx).Exec(statement, args...).Error
}

func (t *target) table() string { return pgx.Identifier{t.schema, "datasets"}.Sanitize() }

// fill makes the table anew with rows fresh rows of payload bytes, and returns the
// id of the first.
func (t *target) fill(ctx context.Context, rows, payload int) (first int64, err error) {
	const overhead = len(`{"i": 1000000, "pad": ""}`)
	for _, statement := range []string{
		`TRUNCATE ` + t.table(),
		fmt.Sprintf(`INSERT INTO %s (data) SELECT jsonb_build_object('i', i, 'pad', %s) FROM generate_series(1, %d) AS i`,
			t.table(), padding(payload-overhead), rows),
		`VACUUM (ANALYZE) ` + t.table(),
	} {
		if err := t.exec(ctx, statement); err != nil {
			return 0, err
		}
	}
	if t.cluster != nil { // so that no checkpoint of the filling falls into the measurement
		if err := t.exec(ctx, `CHECKPOINT`); err != nil {
			return 0, err
		}
	}
	err = t.db.WithContext(ctx).Raw(`SELECT min(id) FROM ` + t.table()).Scan(&first).Error
	return first, err
}

// padding is text that TOAST can't make much shorter when it is long.
func padding(bytes int) string {
	if bytes < 1000 {
		return fmt.Sprintf(`repeat('x', %d)`, max(bytes, 0))
	}
	return fmt.Sprintf(`(SELECT string_agg(md5(CAST(CAST(i AS bigint) * 1000 + n AS text)), '') FROM generate_series(1, %d) AS n)`, bytes/32)
}

func (t *target) sqliteFile() string { return filepath.Join(t.folder, "bench.db") }
