package checkout

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/txn"
	"github.com/windrow-go/windrow/model"
)

// Failure is the error of one row, as [Postgres.Failures] and [SQLite.Failures] read it.
type Failure struct {
	ID    int64
	Key   *string
	State model.State // Failed: for good; Waiting: the row is to be tried again
	Error string      // its first 16,384 characters
	// At is when the row failed: it was checked in, or, if it waits, when the try
	// that failed was checked out.
	At time.Time
	// Version is that of the handler that failed; nil if it is not known. Of rows
	// that wait it is not: a check-in leaves it with the row only when it ends a round.
	Version *string
}

// Failures calls each for every row that failed for good, in the order of ids, and then
// for every row that waits for another try after an error, in the order in which they
// come due, all as they were at one instant. Rows are streamed: memory does not grow
// with the table. It stops at each's first error and returns it.
//
// A row that is being tried again just now is not among them, nor is one that was put
// back for another try at once: these stand among the fresh rows, all of which would
// have to be read.
func (s *Postgres) Failures(ctx context.Context, each func(Failure) error) error {
	var failed error
	err := txn.Snapshot(ctx, s.db, func(tx *gorm.DB) (err error) {
		if err := tx.Exec(byIndexSQL).Error; err != nil {
			return err
		}
		read := reader[time.Time]{tx: tx, at: func(t time.Time) time.Time { return t.UTC() }}
		schema := strings.NewReplacer("{schema}", s.sql.schema)
		failed, err = read.both(schema.Replace(failedErrorsSQL), schema.Replace(waitingErrorsSQL), each)
		return err
	})
	if failed != nil {
		return failed
	}
	return explain("read the errors", err)
}

// failedErrorsSQL walks the partial index of the failed. windrow itself stores at most
// 8 KiB of an error; the limit is for what others may have written.
const failedErrorsSQL = `
SELECT
	d.id,
	d.key,
	left(d.error, 16384),
	coalesce(d.processed_at, d.last_checkout),
	d.version
FROM {schema}.datasets AS d
WHERE d.is_processed
	AND d.error IS NOT NULL
ORDER BY d.id`

// waitingErrorsSQL walks the part of the queue that is not fresh.
const waitingErrorsSQL = `
SELECT
	d.id,
	d.key,
	left(d.last_error, 16384),
	d.last_checkout,
	CAST(NULL AS text)
FROM {schema}.datasets AS d
WHERE NOT d.is_processed
	AND d.available_at > TIMESTAMPTZ 'epoch'
	AND d.checked_out_by IS NULL
	AND d.last_error IS NOT NULL
ORDER BY d.available_at, d.id`

// reader reads failures of either engine, whose instants are of type T.
type reader[T any] struct {
	tx *gorm.DB
	at func(T) time.Time
}

// both calls each for the rows of both queries; failed is the error of each.
func (r reader[T]) both(failedSQL, waitingSQL string, each func(Failure) error) (failed, err error) {
	if failed, err = r.rows(model.Failed, failedSQL, each); failed != nil || err != nil {
		return failed, err
	}
	return r.rows(model.Waiting, waitingSQL, each)
}

func (r reader[T]) rows(state model.State, query string, each func(Failure) error) (failed, err error) {
	rows, err := r.tx.Raw(query).Rows()
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		f, err := r.one(rows)
		if err != nil {
			return nil, err
		}
		f.State = state
		if err := each(f); err != nil {
			return err, nil
		}
	}
	return nil, rows.Err()
}

func (r reader[T]) one(rows *sql.Rows) (f Failure, err error) {
	var at T
	err = rows.Scan(&f.ID, &f.Key, &f.Error, &at, &f.Version)
	f.At = r.at(at)
	return f, err
}
