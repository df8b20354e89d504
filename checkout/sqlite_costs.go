package checkout

import (
	"context"

	"gorm.io/gorm"
)

// Spend adds cost to what holder's handler has cost, and returns the sum over all
// workers that there have been.
func (s *SQLite) Spend(ctx context.Context, holder string, cost float64) (total float64, err error) {
	sum := func(tx *gorm.DB) error { return tx.Raw(sqliteSpentSQL).Scan(&total).Error }
	if cost <= 0 {
		err = s.read(ctx, "add up the cost", sum)
		return total, err
	}
	err = s.write(ctx, "add up the cost", func(tx *gorm.DB) error {
		if err := tx.Exec(sqliteSpendSQL, holder, cost).Error; err != nil {
			return err
		}
		return sum(tx)
	})
	return total, err
}

const (
	sqliteSpendSQL = `
INSERT INTO costs (holder, cost)
VALUES (?, ?)
ON CONFLICT (holder) DO UPDATE SET cost = cost + excluded.cost`

	sqliteSpentSQL = `SELECT coalesce(sum(cost), 0.0) FROM costs`
)
