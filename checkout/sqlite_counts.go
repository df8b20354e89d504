package checkout

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// Count counts the rows that a selection would put back now, by state. The keys of
// Selection.MoreKeys are read to their end.
func (s *SQLite) Count(ctx context.Context, sel Selection) (Counts, error) {
	return countSelection(ctx, s, sel)
}

// First returns the ids of the first n rows of a selection.
func (s *SQLite) First(ctx context.Context, sel Selection, n int) ([]int64, error) {
	return firstOf(ctx, s, sel, n)
}

func (s *SQLite) countSelected(ctx context.Context, sel Selection, ids []int64) (Counts, error) {
	which, args := "1", []any{}
	if sel.byKeys() {
		list, err := json.Marshal(ids)
		if err != nil {
			return nil, err
		}
		which, args = "d.id IN (SELECT value FROM json_each(?1))", append(args, string(list))
	}
	fits, args := sqliteFits(sel, time.Now().UTC().Add(24*time.Hour), args)
	counts := countsOf(nil)
	err := s.readOnly(ctx, sel, fmt.Sprintf(sqliteCountsSQL, which+" AND "+fits), args, func(rows *sql.Rows) error {
		var row stateCount
		err := rows.Scan(&row.State, &row.N)
		counts[row.State] += row.N
		return err
	})
	return counts, err
}

// Counts counts all rows by state.
func (s *SQLite) Counts(ctx context.Context) (Counts, error) {
	var rows []stateCount
	err := s.read(ctx, "count", func(tx *gorm.DB) error {
		return tx.Raw(fmt.Sprintf(sqliteCountsSQL, "1")).Scan(&rows).Error
	})
	if err != nil {
		return nil, err
	}
	return countsOf(rows), nil
}

const sqliteCountsSQL = `
SELECT
	CASE
		WHEN d.is_processed AND d.error IS NOT NULL THEN 'failed'
		WHEN d.is_processed THEN 'done'
		WHEN d.checked_out_by IS NOT NULL AND d.available_at > ` + nowSQL + ` THEN 'in_flight'
		WHEN d.checked_out_by IS NOT NULL THEN 'expired'
		WHEN d.available_at > ` + nowSQL + ` THEN 'waiting'
		ELSE 'fresh'
	END AS state,
	count(*) AS n
FROM datasets AS d
WHERE %s
GROUP BY 1`
