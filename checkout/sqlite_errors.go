package checkout

import (
	"context"

	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/txn"
)

// Failures calls each for every row that failed for good, in the order of ids, and then
// for every row that waits for another try after an error, in the order in which they
// come due, all as they were at one instant. Rows are streamed: memory does not grow
// with the table. It stops at each's first error and returns it.
//
// A row that is being tried again just now is not among them, nor is one that was put
// back for another try at once: these stand among the fresh rows, all of which would
// have to be read.
func (s *SQLite) Failures(ctx context.Context, each func(Failure) error) error {
	var failed error
	err := txn.Deferred(ctx, s.db, func(tx *gorm.DB) (err error) {
		failed, err = reader[int64]{tx: tx, at: instant}.both(sqliteFailedErrorsSQL, sqliteWaitingErrorsSQL, each)
		return err
	})
	if failed != nil {
		return failed
	}
	return explain("read the errors", err)
}

// The two statements name their indexes: with the statistics of a time at which nearly
// all rows had failed, the planner would read the whole table.
const sqliteFailedErrorsSQL = `
SELECT
	d.id,
	d.key,
	substr(d.error, 1, 16384),
	coalesce(d.processed_at, d.last_checkout),
	d.version
FROM datasets AS d INDEXED BY failed_datasets_idx
WHERE d.is_processed
	AND d.error IS NOT NULL
ORDER BY d.id`

const sqliteWaitingErrorsSQL = `
SELECT
	d.id,
	d.key,
	substr(d.last_error, 1, 16384),
	d.last_checkout,
	NULL
FROM datasets AS d INDEXED BY unprocessed_datasets_idx
WHERE NOT d.is_processed
	AND d.available_at > 0
	AND d.checked_out_by IS NULL
	AND d.last_error IS NOT NULL
ORDER BY d.available_at, d.id`
