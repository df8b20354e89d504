package checkout

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/txn"
	"github.com/windrow-go/windrow/model"
)

// Count counts the rows that a selection would put back now, by state. The keys of
// Selection.MoreKeys are read to their end.
func (s *Postgres) Count(ctx context.Context, sel Selection) (Counts, error) {
	return countSelection(ctx, s, sel)
}

// First returns the ids of the first n rows of a selection.
func (s *Postgres) First(ctx context.Context, sel Selection, n int) ([]int64, error) {
	return firstOf(ctx, s, sel, n)
}

func (s *Postgres) countSelected(ctx context.Context, sel Selection, ids []int64) (Counts, error) {
	which, args := "true", []any{}
	if sel.byKeys() {
		which, args = "d.id = ANY(CAST($1 AS bigint[]))", append(args, ids)
	}
	fits, args := postgresFits(sel, time.Now().UTC().Add(24*time.Hour), args)
	var rows []stateCount
	err := s.readOnly(ctx, sel, txn.Statement{
		SQL:  fmt.Sprintf(s.sql.counts, which+" AND "+fits),
		Args: args,
		Rows: func(answer pgx.Rows) (err error) {
			rows, err = pgx.CollectRows(answer, pgx.RowToStructByPos[stateCount])
			return err
		},
	})
	return countsOf(rows), err
}

// Counts counts all rows by state, exactly, in one pass over the table.
func (s *Postgres) Counts(ctx context.Context) (Counts, error) {
	var rows []stateCount
	err := txn.Snapshot(ctx, s.db, func(tx *gorm.DB) error {
		return tx.Raw(fmt.Sprintf(s.sql.counts, "true")).Scan(&rows).Error
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
