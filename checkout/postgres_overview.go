package checkout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/txn"
	"github.com/windrow-go/windrow/model"
)

// Overview tells how the job stands, within a second. With exact, the rows are
// counted in a pass over the table, however long that takes.
func (s *Postgres) Overview(ctx context.Context, exact bool) (Overview, error) {
	return overview(ctx, s, exact)
}

// overviewFacts reads everything in one snapshot, but for what takes too long.
func (s *Postgres) overviewFacts(ctx context.Context) (*overviewFacts, error) {
	facts, err := s.factsWithin(ctx, true)
	if isTimeout(err) {
		facts, err = s.factsWithin(ctx, false)
	}
	return facts, explain("look at the job", err)
}

func (s *Postgres) factsWithin(ctx context.Context, open bool) (*overviewFacts, error) {
	facts := &overviewFacts{}
	err := txn.Snapshot(ctx, s.db, func(tx *gorm.DB) error {
		*facts = overviewFacts{}
		if err := tx.Raw(s.sql.facts).Scan(facts).Error; err != nil || !open {
			return err
		}
		var rows []stateCount
		if err := limited(tx, openBudget).Raw(s.sql.open).Scan(&rows).Error; err != nil {
			return err
		}
		facts.open = Counts{model.InFlight: 0, model.Waiting: 0, model.Expired: 0}
		for _, row := range rows {
			facts.open[row.State] = row.N
		}
		var due float64
		if err := limited(tx, openBudget).Raw(s.sql.oldestDue).Scan(&due).Error; err != nil {
			return err
		}
		facts.due = time.Duration(due * float64(time.Second))
		return nil
	})
	if err != nil || !open {
		return facts, err
	}
	facts.anyFresh, err = s.anyFresh(ctx)
	return facts, err
}

// anyFresh tells whether a row is fresh, if that is found out in time.
func (s *Postgres) anyFresh(ctx context.Context) (*bool, error) {
	var any bool
	err := txn.Snapshot(ctx, s.db, func(tx *gorm.DB) error {
		return limited(tx, freshBudget).Raw(s.sql.anyFresh).Scan(&any).Error
	})
	if isTimeout(err) {
		return nil, nil
	}
	return &any, err
}

// limited bounds the statements that follow in the transaction.
func limited(tx *gorm.DB, d time.Duration) *gorm.DB {
	if err := tx.Exec(fmt.Sprintf(`SELECT set_config('statement_timeout', '%dms', true), set_config('enable_seqscan', 'off', true)`, d.Milliseconds())).Error; err != nil {
		_ = tx.AddError(err)
	}
	return tx
}

// isTimeout tells whether a statement was cut off by its own limit.
func isTimeout(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && server.Code == "57014"
}

const factsSQL = `
SELECT
	(SELECT min(id) FROM {schema}.datasets) AS first,
	(SELECT max(id) FROM {schema}.datasets) AS last,
	CAST(l.inserted + t.added AS bigint) AS total,
	CAST(l.ids + t.ids AS bigint) AS ids,
	CAST(t.done AS bigint) AS done,
	CAST(t.failed AS bigint) AS failed,
	CAST(t.lately AS bigint) AS lately
FROM (
	SELECT
		coalesce(sum(done), 0) AS done,
		coalesce(sum(failed), 0) AS failed,
		coalesce(sum(added), 0) AS added,
		coalesce(sum(ids), 0) AS ids,
		coalesce(sum(done + failed) FILTER (WHERE at > statement_timestamp() - interval '1 minute'), 0) AS lately
	FROM {schema}.tallies
) AS t
CROSS JOIN (
	SELECT
		coalesce(sum(inserted), 0) AS inserted,
		coalesce(sum(inserted + duplicates + changed), 0) AS ids
	FROM {schema}.loads
) AS l`

// openSQL counts the rows that are held or wait, by the partial index.
const openSQL = `
SELECT
	CASE
		WHEN d.checked_out_by IS NULL AND d.available_at > statement_timestamp() THEN 'waiting'
		WHEN d.checked_out_by IS NULL THEN 'fresh'
		WHEN d.available_at > statement_timestamp() THEN 'in_flight'
		ELSE 'expired'
	END AS state,
	count(*) AS n
FROM {schema}.datasets AS d
WHERE NOT d.is_processed
	AND d.available_at > TIMESTAMPTZ 'epoch'
GROUP BY 1`

const oldestDueSQL = `
SELECT coalesce(CAST(extract(epoch FROM statement_timestamp() - min(d.available_at)) AS double precision), 0)
FROM {schema}.datasets AS d
WHERE NOT d.is_processed
	AND d.available_at > TIMESTAMPTZ 'epoch'
	AND d.available_at <= statement_timestamp()`

const anyFreshSQL = `
SELECT EXISTS (
	SELECT
	FROM {schema}.datasets
	WHERE NOT is_processed
		AND available_at = TIMESTAMPTZ 'epoch'
)`

// sampleStates counts the rows ids by state, one look by the primary key each.
func (s *Postgres) sampleStates(ctx context.Context, ids []int64) (Counts, error) {
	var rows []stateCount
	err := s.inOneTrip(ctx, "look at the job", settle, txn.Statement{
		SQL:  fmt.Sprintf(s.sql.counts, `d.id = ANY(CAST(@ids AS bigint[]))`),
		Args: []any{pgx.NamedArgs{"ids": ids}},
		Rows: func(answer pgx.Rows) (err error) {
			rows, err = pgx.CollectRows(answer, pgx.RowToStructByPos[stateCount])
			return err
		},
	})
	return countsOf(rows), err
}
