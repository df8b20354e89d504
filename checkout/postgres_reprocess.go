package checkout

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/txn"
	"github.com/windrow-go/windrow/model"
)

// Reprocess puts the selected rows back, chunk by chunk, each a short
// transaction of its own; by says who asked for it. A live claim is never cut:
// such a row begins its next round at its check-in. Results stay readable until
// the next ones are checked in.
func (s *Postgres) Reprocess(ctx context.Context, sel Selection, by string) (Reprocessed, error) {
	var out Reprocessed
	if err := sel.validate(); err != nil {
		return out, err
	}
	var run struct {
		ID        int64
		CreatedAt time.Time
	}
	err := s.readCommitted(ctx, "begin a run", func(tx *gorm.DB) error {
		return tx.Raw(`INSERT INTO `+s.sql.schema+`.runs (kind, selection, created_by)
			VALUES ('reprocess', ?, ?) RETURNING id, created_at`, sel.String(), by).Scan(&run).Error
	})
	if err != nil {
		return out, err
	}
	out.Run = run.ID
	if len(sel.Keys) > 0 {
		err = s.reprocessKeys(ctx, sel, run.CreatedAt, &out)
	} else {
		err = s.reprocessScan(ctx, sel, run.CreatedAt, &out)
	}
	if err != nil {
		return out, err
	}
	err = s.readCommitted(ctx, "end a run", func(tx *gorm.DB) error {
		return tx.Exec(s.sql.finishRun, out.PutBack, out.Deferred, out.Run).Error
	})
	if err != nil {
		return out, err
	}
	return out, s.announce(ctx)
}

const finishRunSQL = `
UPDATE {schema}.runs
SET
	put_back = ?,
	deferred = ?,
	finished_at = clock_timestamp()
WHERE id = ?`

func (s *Postgres) reprocessScan(ctx context.Context, sel Selection, began time.Time, out *Reprocessed) error {
	after := int64(-1 << 62)
	for {
		var ids []int64
		err := s.inOneTrip(ctx, "reprocess", settle, txn.Statement{
			SQL:  fmt.Sprintf(s.sql.putBackScan, sel.condition(), chunk),
			Args: []any{pgx.NamedArgs{"after": after, "began": began}},
			Rows: into(&ids),
		})
		if err != nil || len(ids) == 0 {
			return err
		}
		if err := s.putBack(ctx, sel, began, ids, out); err != nil {
			return err
		}
		after = ids[len(ids)-1]
	}
}

const putBackScanSQL = `
SELECT d.id
FROM {schema}.datasets AS d
WHERE d.id > @after
	AND %s
ORDER BY d.id
LIMIT %d`

func (s *Postgres) reprocessKeys(ctx context.Context, sel Selection, began time.Time, out *Reprocessed) error {
	keys := cleanKeys(sel.Keys)
	for len(keys) > 0 {
		part := keys[:min(len(keys), chunk)]
		keys = keys[len(part):]
		found, err := s.idsOf(ctx, part)
		if err != nil {
			return err
		}
		ids := make([]int64, 0, len(part))
		for _, key := range part {
			if id, there := found[key]; there {
				ids = append(ids, id)
				continue
			}
			out.Missing = append(out.Missing, key)
		}
		if err := s.putBack(ctx, sel, began, ids, out); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reprocessed) count(deferred []bool) {
	for _, d := range deferred {
		if d {
			r.Deferred++
			continue
		}
		r.PutBack++
	}
}

func (s *Postgres) idsOf(ctx context.Context, keys []string) (map[string]int64, error) {
	var rows []struct {
		Key string
		ID  int64
	}
	err := s.readCommitted(ctx, "look up keys", func(tx *gorm.DB) error {
		return tx.Raw(`SELECT key, id FROM `+s.sql.schema+`.dataset_keys WHERE key = ANY(CAST(? AS text[]))`,
			array[string]{keys}).Scan(&rows).Error
	})
	found := make(map[string]int64, len(rows))
	for _, row := range rows {
		found[row.Key] = row.ID
	}
	return found, err
}

// putBack puts those of the rows ids back, or marks them if they are held, that
// still meet the condition.
func (s *Postgres) putBack(ctx context.Context, sel Selection, began time.Time, ids []int64, out *Reprocessed) error {
	var deferred []bool
	err := s.inOneTrip(ctx, "reprocess", settle, txn.Statement{
		SQL:  fmt.Sprintf(s.sql.putBack, sel.condition()),
		Args: []any{pgx.NamedArgs{"ids": ids, "run": out.Run, "began": began}},
		Rows: into(&deferred),
	})
	if err == nil {
		out.count(deferred)
	}
	return err
}

// liveSQL is a live claim. It stands in the statement as often as it is needed,
// over the row itself: a join that computed it once would see the row as it was
// before a check-in that the update has waited for.
const liveSQL = `(NOT d.is_processed AND d.checked_out_by IS NOT NULL AND d.available_at > statement_timestamp())`

// putBackSQL leaves a live claim alone and marks the row. An expired claim that
// is put back gets a new token, so that its worker, should it wake, finds its
// ticket stale.
const putBackSQL = `
UPDATE {schema}.datasets AS d
SET
	is_processed = false,
	available_at = CASE WHEN {live} THEN d.available_at ELSE TIMESTAMPTZ 'epoch' END,
	checkouts = d.checkouts + CASE WHEN {live} OR d.is_processed OR d.checked_out_by IS NULL THEN 0 ELSE 1 END,
	checked_out_by = CASE WHEN {live} THEN d.checked_out_by END,
	attempts = CASE WHEN {live} THEN d.attempts ELSE 0 END,
	losses = CASE WHEN {live} THEN d.losses ELSE 0 END,
	refunds = CASE WHEN {live} THEN d.refunds ELSE 0 END,
	round = d.round + CASE WHEN {live} THEN 0 ELSE 1 END,
	last_error = CASE WHEN {live} THEN d.last_error END,
	run_id = CASE WHEN {live} THEN d.run_id ELSE CAST(@run AS bigint) END,
	redo_run = CASE WHEN {live} THEN CAST(@run AS bigint) END
WHERE d.id = ANY(CAST(@ids AS bigint[]))
	AND %s
RETURNING redo_run IS NOT NULL`

// Count counts the rows that a selection would put back now, by state.
func (s *Postgres) Count(ctx context.Context, sel Selection) (Counts, error) {
	if err := sel.validate(); err != nil {
		return nil, err
	}
	where := sel.condition()
	args := []any{sql.Named("began", time.Now().UTC().Add(24*time.Hour))}
	if len(sel.Keys) > 0 {
		where += `AND d.id IN (SELECT k.id FROM ` + s.sql.schema + `.dataset_keys AS k WHERE k.key = ANY(CAST(@keys AS text[])))`
		args = append(args, sql.Named("keys", array[string]{cleanKeys(sel.Keys)}))
	}
	return s.count(ctx, where, args...)
}

// Counts counts all rows by state, exactly, in one pass over the table.
func (s *Postgres) Counts(ctx context.Context) (Counts, error) {
	return s.count(ctx, "true")
}

func (s *Postgres) count(ctx context.Context, where string, args ...any) (Counts, error) {
	var rows []stateCount
	err := txn.Snapshot(ctx, s.db, func(tx *gorm.DB) error {
		return tx.Raw(fmt.Sprintf(s.sql.counts, where), args...).Scan(&rows).Error
	})
	if err != nil {
		return nil, explain("count", err)
	}
	return countsOf(rows), nil
}

const countsSQL = `
SELECT
	CASE
		WHEN d.is_processed AND d.error IS NOT NULL THEN 'failed'
		WHEN d.is_processed THEN 'done'
		WHEN d.checked_out_by IS NOT NULL AND d.available_at > statement_timestamp() THEN 'in_flight'
		WHEN d.checked_out_by IS NOT NULL THEN 'expired'
		WHEN d.available_at > statement_timestamp() THEN 'waiting'
		ELSE 'fresh'
	END AS state,
	count(*) AS n
FROM {schema}.datasets AS d
WHERE %s
GROUP BY 1`

type stateCount struct {
	State model.State
	N     int64
}

func countsOf(rows []stateCount) Counts {
	counts := Counts{model.Fresh: 0, model.InFlight: 0, model.Waiting: 0, model.Expired: 0, model.Done: 0, model.Failed: 0}
	for _, row := range rows {
		counts[row.State] = row.N
	}
	return counts
}
