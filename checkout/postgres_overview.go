package checkout

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
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
	facts := &overviewFacts{}
	err := txn.Snapshot(ctx, s.db, func(tx *gorm.DB) error {
		if err := tx.Raw(s.sql.facts).Scan(facts).Error; err != nil {
			return err
		}
		return s.countOpen(limited(tx, s.openBudget), facts)
	})
	if err == nil && !slices.Contains(facts.lacking, model.Expired) {
		facts.anyFresh, err = s.anyFresh(ctx)
	}
	return facts, explain("look at the job", err)
}

// countOpen counts the rows that are held or wait. Those whose time comes within a
// lease stand apart: there is an index entry of each row that was checked out, and
// finished, in the course of the last lease. Of the others there are few.
func (s *Postgres) countOpen(tx *gorm.DB, facts *overviewFacts) error {
	facts.open = noneOpen()
	var due float64
	_, err := inTime(tx, &due, s.sql.oldestDue, sql.Named("now", facts.Now))
	if err != nil {
		return err
	}
	facts.due = fromSeconds(due)
	epoch, end := time.Unix(0, 0).UTC(), facts.Now.AddDate(1000, 0, 0)
	for _, r := range []struct {
		after, upTo time.Time
		states      []model.State
	}{
		{epoch, facts.Now, []model.State{model.Expired}},
		{facts.Now, facts.Until, []model.State{model.InFlight, model.Waiting}},
		{facts.Until, end, []model.State{model.InFlight, model.Waiting}},
	} {
		var rows []openCount
		switch ok, err := inTime(tx, &rows, s.sql.open, facts.Now, r.after, r.upTo); {
		case err != nil:
			return err
		case !ok:
			facts.lacks(r.states...)
		}
		facts.count(rows)
	}
	return nil
}

// inTime reads the answer to a query, if there is one before the transaction's
// statement_timeout. The transaction can go on either way.
func inTime(tx *gorm.DB, answer any, query string, args ...any) (bool, error) {
	if err := tx.Exec(`SAVEPOINT in_time`).Error; err != nil {
		return false, err
	}
	err := tx.Raw(query, args...).Scan(answer).Error
	if isTimeout(err) {
		return false, tx.Exec(`ROLLBACK TO SAVEPOINT in_time`).Error
	}
	return err == nil, err
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
	if err := tx.Exec(fmt.Sprintf(limitedSQL, d.Milliseconds())).Error; err != nil {
		_ = tx.AddError(err)
	}
	return tx
}

// limitedSQL also makes statements go by the index entry by entry: that marks the
// entries of rows finished lately as dead, so that the next look is spared them.
const limitedSQL = `
SELECT
	set_config('statement_timeout', '%dms', true),
	set_config('jit', 'off', true),
	set_config('max_parallel_workers_per_gather', '0', true),
	set_config('enable_seqscan', 'off', true),
	set_config('enable_bitmapscan', 'off', true)`

// isTimeout tells whether a statement was cut off by its own limit.
func isTimeout(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && server.Code == "57014"
}

const factsSQL = `
SELECT
	statement_timestamp() AS now,
	statement_timestamp() + make_interval(secs => (SELECT coalesce(max(lease), 0) FROM {schema}.workers)) AS until,
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

// openSQL counts the rows that are held or wait, or have waited, by the partial index.
const openSQL = `
SELECT
	CASE
		WHEN d.available_at <= p.now AND d.checked_out_by IS NULL THEN 'fresh'
		WHEN d.available_at <= p.now THEN 'expired'
		WHEN d.checked_out_by IS NULL THEN 'waiting'
		ELSE 'in_flight'
	END AS state,
	count(*) AS n,
	CAST(extract(epoch FROM min(d.available_at) - p.now) AS double precision) AS next
FROM (SELECT CAST(? AS timestamptz) AS now) AS p
CROSS JOIN {schema}.datasets AS d
WHERE NOT d.is_processed
	AND d.available_at > ?
	AND d.available_at <= ?
GROUP BY 1, p.now`

const oldestDueSQL = `
SELECT coalesce(CAST(extract(epoch FROM CAST(@now AS timestamptz) - (
	SELECT min(d.available_at)
	FROM {schema}.datasets AS d
	WHERE NOT d.is_processed
		AND d.available_at > TIMESTAMPTZ 'epoch'
		AND d.available_at <= @now
)) AS double precision), 0)`

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
