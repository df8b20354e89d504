package checkout

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/txn"
	"github.com/windrow-go/windrow/model"
)

func (s *SQLite) peekFresh(ctx context.Context, after, upTo int64, n int) ([]int64, error) {
	var ids []int64
	err := s.read(ctx, "peek", func(tx *gorm.DB) error {
		return tx.Raw(sqlitePeekFreshSQL, after, upTo, n).Scan(&ids).Error
	})
	return ids, err
}

// The predicate of the index is repeated to the letter: SQLite knows a partial
// index by its text.
const sqlitePeekFreshSQL = `
SELECT id
FROM datasets
WHERE NOT is_processed
	AND available_at = 0
	AND id > ?
	AND id <= ?
ORDER BY id
LIMIT ?`

func (s *SQLite) sample(ctx context.Context, ids []int64) ([]int64, error) {
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	var fresh []int64
	err = s.read(ctx, "peek", func(tx *gorm.DB) error {
		return tx.Raw(sqliteSampleSQL, string(list)).Scan(&fresh).Error
	})
	return fresh, err
}

const sqliteSampleSQL = `
SELECT id
FROM datasets
WHERE id IN (SELECT value FROM json_each(?))
	AND +is_processed = 0
	AND +available_at = 0`

func (s *SQLite) bounds(ctx context.Context) (low, high int64, ok bool, err error) {
	return s.lowAndHigh(ctx, sqliteBoundsSQL)
}

const sqliteBoundsSQL = `
SELECT
	(SELECT min(id) FROM datasets) AS low,
	(SELECT max(id) FROM datasets) AS high`

func (s *SQLite) freshBounds(ctx context.Context) (low, high int64, ok bool, err error) {
	return s.lowAndHigh(ctx, sqliteFreshBoundsSQL)
}

func (s *SQLite) lowAndHigh(ctx context.Context, sql string) (low, high int64, ok bool, err error) {
	var bounds struct{ Low, High *int64 }
	err = s.read(ctx, "peek", func(tx *gorm.DB) error {
		return tx.Raw(sql).Scan(&bounds).Error
	})
	if err != nil || bounds.Low == nil || bounds.High == nil {
		return 0, 0, false, err
	}
	return *bounds.Low, *bounds.High, true, nil
}

const sqliteFreshBoundsSQL = `
SELECT
	(SELECT min(id) FROM datasets WHERE NOT is_processed AND available_at = 0) AS low,
	(SELECT max(id) FROM datasets WHERE NOT is_processed AND available_at = 0) AS high`

func (s *SQLite) peekDue(ctx context.Context, from time.Time, n int) (dueRows, error) {
	var rows dueRows
	err := s.read(ctx, "peek", func(tx *gorm.DB) error {
		var found []struct{ ID, AvailableAt int64 }
		if err := tx.Raw(sqlitePeekDueSQL, from.UnixMicro(), n).Scan(&found).Error; err != nil {
			return err
		}
		var now int64
		if err := tx.Raw(`SELECT ` + nowSQL).Scan(&now).Error; err != nil {
			return err
		}
		rows = dueRows{now: instant(now)}
		for _, row := range found {
			rows.keys = append(rows.keys, row.ID)
		}
		if len(found) > 0 {
			rows.oldest = instant(found[0].AvailableAt)
		}
		return nil
	})
	return rows, err
}

const sqlitePeekDueSQL = `
SELECT id, available_at
FROM datasets
WHERE NOT is_processed
	AND available_at > ?
	AND available_at > 0
	AND available_at <= ` + nowSQL + `
ORDER BY available_at, id
LIMIT ?`

// CheckOut hands out up to n rows to holder until lease has passed. Fewer, or
// none, is normal: others are at work too.
func (s *SQLite) CheckOut(ctx context.Context, holder string, lease time.Duration, n int) ([]model.Claim, error) {
	claims, err := s.walker.checkOut(ctx, holder, lease, n)
	return claims, explain("check out", err)
}

// CheckOutKeys hands out those of the rows ids that may be checked out now.
func (s *SQLite) CheckOutKeys(ctx context.Context, holder string, lease time.Duration, ids []int64) ([]model.Claim, error) {
	var claims []model.Claim
	err := txn.Retry(ctx, s.opts.policy("check out"), func() error {
		got, err := s.claim(ctx, holder, lease, slices.Sorted(slices.Values(ids)))
		claims = got
		return err
	})
	return claims, explain("check out", err)
}

// claim is the check-out transaction: one UPDATE over exactly these keys.
func (s *SQLite) claim(ctx context.Context, holder string, lease time.Duration, keys []int64) ([]model.Claim, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	list, err := json.Marshal(keys)
	if err != nil {
		return nil, err
	}
	var claims []model.Claim
	err = txn.Immediate(ctx, s.db, func(tx *gorm.DB) error {
		rows, err := tx.Raw(sqliteClaimSQL, lease.Microseconds(), holder, string(list)).Rows()
		if err != nil {
			return err
		}
		defer rows.Close()
		claims, err = scanClaims(rows, holder, s.job, len(keys))
		return errors.Join(err, rows.Err())
	})
	return claims, err
}

// The unary plus keeps the planner off the partial index: the keys are few, and
// the row is found by its id. The optimistic predicate stands last.
const sqliteClaimSQL = `
UPDATE datasets
SET
	available_at = ` + nowSQL + ` + ?,
	last_checkout = ` + nowSQL + `,
	losses = losses + (checked_out_by IS NOT NULL),
	checked_out_by = ?,
	checkouts = checkouts + 1,
	attempts = attempts + 1
WHERE id IN (SELECT value FROM json_each(?))
	AND +is_processed = 0
	AND +available_at <= ` + nowSQL + `
RETURNING id, key, data, checkouts, attempts, losses, round, refunds`
