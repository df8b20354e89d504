package checkout

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/windrow-go/windrow/internal/txn"
)

// Spend adds cost to what holder's handler has cost, and returns the sum over all
// workers that there have been. If its answer is lost and it is asked again, the cost
// may be added twice.
func (s *Postgres) Spend(ctx context.Context, holder string, cost float64) (total float64, err error) {
	var statements []txn.Statement
	if cost > 0 {
		statements = append(statements, txn.Statement{SQL: s.sql.spend, Args: []any{pgx.NamedArgs{"holder": holder, "cost": cost}}})
	}
	var sum []float64
	statements = append(statements, txn.Statement{SQL: s.sql.spent, Rows: into(&sum)})
	if err := s.inOneTrip(ctx, "add up the cost", statements...); err != nil {
		return 0, err
	}
	return sum[0], nil
}

const spendSQL = `
INSERT INTO {schema}.costs AS c (holder, cost)
VALUES (@holder , @cost )
ON CONFLICT (holder) DO UPDATE SET cost = c.cost + excluded.cost`

const spentSQL = `
SELECT coalesce(sum(cost), 0)
FROM {schema}.costs`
