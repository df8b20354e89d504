package checkout

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/windrow-go/windrow/internal/txn"
	"github.com/windrow-go/windrow/model"
)

// Renew pushes the leases of one holder's claims to lease from now, and returns
// the tickets that a newer claim has made stale.
func (s *Postgres) Renew(ctx context.Context, lease time.Duration, tickets []model.Ticket) ([]model.Ticket, error) {
	if len(tickets) == 0 {
		return nil, s.Ping(ctx)
	}
	ids, tokens, err := ticketColumns(tickets)
	if err != nil {
		return nil, err
	}
	var renewed []int64
	err = s.inOneTrip(ctx, "renew", settle, txn.Statement{
		SQL: s.sql.renew,
		Args: []any{pgx.NamedArgs{
			"lease":  lease.Seconds(),
			"ids":    ids,
			"tokens": tokens,
			"holder": tickets[0].Holder,
		}},
		Rows: into(&renewed),
	})
	if err != nil {
		return nil, err
	}
	return ticketsWithout(tickets, renewed), nil
}

const renewSQL = `
UPDATE {schema}.datasets AS d
SET available_at = clock_timestamp() + make_interval(secs => CAST(@lease AS double precision))
FROM unnest(CAST(@ids AS bigint[]), CAST(@tokens AS integer[])) AS u (id, token)
WHERE d.id = u.id
	AND d.checkouts = u.token
	AND d.checked_out_by = @holder
	AND d.is_processed IS NOT TRUE
RETURNING d.id`
