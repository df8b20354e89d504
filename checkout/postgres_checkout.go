package checkout

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/windrow-go/windrow/internal/txn"
	"github.com/windrow-go/windrow/model"
)

// rangeOfLight is how many neighbouring ids share a traffic light. Claims of a few
// rows have lights of their own, each for about a leaf of the primary key: with the
// others' a fleet that claims row by row would stand at red most of the time.
const (
	rangeOfLight      = 4096
	fewRows           = 16
	rangeOfSmallLight = 512
)

// lightOf is the light of a claim, among those of its job.
func lightOf(keys []int64) int32 {
	if len(keys) <= fewRows {
		return -1 - int32(keys[0]/rangeOfSmallLight%(1<<31))
	}
	return int32(keys[0] / rangeOfLight % (1 << 31))
}

// CheckOut hands out up to n rows to holder until lease has passed. Fewer, or
// none, is normal: others are at work too. Lost races are done again here;
// model.ErrUnavailable says that the server can't be reached.
func (s *Postgres) CheckOut(ctx context.Context, holder string, lease time.Duration, n int) ([]model.Claim, error) {
	claims, err := s.walker.checkOut(ctx, holder, lease, n)
	if len(claims) > 0 {
		s.restEar(false)
	}
	return claims, explain("check out", err)
}

// CheckOutKeys hands out those of the rows ids that may be checked out now.
func (s *Postgres) CheckOutKeys(ctx context.Context, holder string, lease time.Duration, ids []int64) ([]model.Claim, error) {
	var claims []model.Claim
	err := txn.Retry(ctx, s.opts.policy("check out"), func() error {
		got, err := s.claim(ctx, holder, lease, slices.Sorted(slices.Values(ids)))
		claims = got
		return err
	})
	return claims, explain("check out", err)
}

// claim is the check-out transaction: one UPDATE over exactly these keys.
func (s *Postgres) claim(ctx context.Context, holder string, lease time.Duration, keys []int64) ([]model.Claim, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	var claims []model.Claim
	err := s.pipeline(ctx, pgx.Serializable, settle, txn.Statement{
		SQL: s.sql.claim,
		Args: []any{pgx.NamedArgs{
			"keys":   keys,
			"holder": holder,
			"lease":  lease.Seconds(),
			"space":  s.light,
			"range":  lightOf(keys),
		}},
		Rows: func(rows pgx.Rows) (err error) {
			claims, err = scanClaims(rows, holder, s.job, len(keys))
			return err
		},
	})
	if err != nil {
		return nil, err
	}
	return claims, nil
}

// claimSQL takes @keys , @holder , @lease (seconds) and, for the traffic light,
// @space and @range . IS NOT TRUE instead of the index's own predicate keeps the
// planner off the partial index, to which it would flip near the end.
// The optimistic predicate stands last: rows that somebody else has taken since
// the peek just don't come back.
const claimSQL = `
UPDATE {schema}.datasets AS d
SET
	available_at = clock_timestamp() + make_interval(secs => CAST(@lease AS double precision)),
	last_checkout = clock_timestamp(),
	checked_out_by = @holder ,
	checkouts = d.checkouts + 1,
	attempts = d.attempts + 1,
	losses = d.losses + CASE WHEN d.checked_out_by IS NULL THEN 0 ELSE 1 END
WHERE d.id = ANY(CAST(@keys AS bigint[])){light}
	AND d.is_processed IS NOT TRUE
	AND d.available_at <= statement_timestamp()
RETURNING
	d.id,
	d.key,
	d.data,
	d.checkouts,
	d.attempts,
	d.losses,
	d.round,
	d.refunds`

// lightSQL is a one-time condition, evaluated before any row is read. A red
// light means: no waiting, aim elsewhere. It goes out with the transaction.
const lightSQL = `
	AND (SELECT pg_try_advisory_xact_lock(CAST(@space AS integer), CAST(@range AS integer)))`

// scanClaims reads the answer of a claim, of either driver. Scanning by hand
// instead of through gorm halves the client's time per row.
func scanClaims(rows interface {
	Next() bool
	Scan(dest ...any) error
}, holder, job string, n int) ([]model.Claim, error) {
	claims := make([]model.Claim, 0, n)
	for rows.Next() {
		c := model.Claim{Holder: holder}
		c.Job = job
		var data []byte
		if err := rows.Scan(&c.ID, &c.Key, &data, &c.Checkouts, &c.Attempts, &c.Losses, &c.Round, &c.Refunds); err != nil {
			return nil, err
		}
		c.Data = data
		claims = append(claims, c)
	}
	return claims, nil
}
