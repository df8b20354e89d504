package checkout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/txn"
)

// Now returns the database's clock, by which rows come due.
func (s *Postgres) Now(ctx context.Context) (now time.Time, err error) {
	err = s.readCommitted(ctx, "read the clock", func(tx *gorm.DB) error {
		return tx.Raw(`SELECT clock_timestamp()`).Scan(&now).Error
	})
	return now, err
}

// Add adds one row, and wakes workers that wait. A row with a key that is there
// already is not added: then id is that of the row with the key, and nothing of row is
// taken over. An error that wraps model.ErrUnavailable may come after the row has
// been stored: give it a key, and asking again is safe.
func (s *Postgres) Add(ctx context.Context, row NewRow) (id int64, added bool, err error) {
	err = txn.Retry(ctx, s.opts.policy("add"), func() error {
		return txn.PGX(ctx, s.db, func(tx pgx.Tx) (err error) {
			if id, added, err = s.addOne(ctx, tx, row); err != nil || !added {
				return err
			}
			if _, err := tx.Exec(ctx, s.sql.tally, addWriter, 0, 1, 1); err != nil {
				return err
			}
			if id%tallyEvery == 0 {
				if _, err := tx.Exec(ctx, s.sql.tallyUp, addWriter); err != nil {
					return err
				}
			}
			_, err = tx.Exec(ctx, `NOTIFY `+s.channel)
			return err
		})
	})
	return id, added, explain("add", err)
}

// addOne stores the row. Whoever adds a row with a key that another transaction is
// just adding waits for that.
func (s *Postgres) addOne(ctx context.Context, tx pgx.Tx, row NewRow) (id int64, added bool, err error) {
	due := row.vestingTime(time.Time{}) // the sentinel, if it has none
	if row.Key == nil {
		err = tx.QueryRow(ctx, s.sql.add, row.Data, due).Scan(&id)
		return id, err == nil, err
	}
	const byKey = `SELECT id FROM %s.dataset_keys WHERE key = $1`
	err = tx.QueryRow(ctx, fmt.Sprintf(byKey, s.sql.schema), *row.Key).Scan(&id)
	if !errors.Is(err, pgx.ErrNoRows) {
		return id, false, err
	}
	ids, err := s.reserveIDs(ctx, tx, 1)
	if err != nil {
		return 0, false, err
	}
	err = tx.QueryRow(ctx, s.sql.addKeyed, ids[0], *row.Key, row.Data, due).Scan(&id)
	if !errors.Is(err, pgx.ErrNoRows) {
		return id, err == nil, err
	}
	err = tx.QueryRow(ctx, fmt.Sprintf(byKey, s.sql.schema), *row.Key).Scan(&id)
	return id, false, err
}

const addSQL = `
INSERT INTO {schema}.datasets (data, available_at)
VALUES ($1::jsonb, CASE WHEN $2::timestamptz > clock_timestamp() THEN $2::timestamptz ELSE TIMESTAMPTZ 'epoch' END)
RETURNING id`

const addKeyedSQL = `
WITH new_key AS (
	INSERT INTO {schema}.dataset_keys (key, id)
	VALUES ($2::text, $1::bigint)
	ON CONFLICT (key) DO NOTHING
	RETURNING key, id
)
INSERT INTO {schema}.datasets (id, key, data, available_at)
SELECT
	id,
	key,
	$3::jsonb,
	CASE WHEN $4::timestamptz > clock_timestamp() THEN $4::timestamptz ELSE TIMESTAMPTZ 'epoch' END
FROM new_key
RETURNING id`

// tallySQL tells of rows that have failed and of rows that were added, with the ids
// that those take up, otherwise than by a worker and by a load.
const tallySQL = `
INSERT INTO {schema}.tallies (writer, at, done, failed, added, ids)
VALUES ($1::text, TIMESTAMPTZ 'epoch', 0, $2::bigint, $3::bigint, $4::bigint)`

// tallyUpSQL makes one of all tallies of a writer that is no worker.
const tallyUpSQL = `
WITH old AS (
	DELETE FROM {schema}.tallies
	WHERE writer = $1::text
	RETURNING done, failed, added, ids
)
INSERT INTO {schema}.tallies (writer, at, done, failed, added, ids)
SELECT $1::text, TIMESTAMPTZ 'epoch', sum(done), sum(failed), sum(added), sum(ids)
FROM old
HAVING count(*) > 0`
