package checkout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/windrow-go/windrow/model"
)

// Overview tells how the job stands, within a second. With exact, the rows are
// counted in a pass over the table, however long that takes.
func (s *SQLite) Overview(ctx context.Context, exact bool) (Overview, error) {
	return overview(ctx, s, exact)
}

// overviewFacts reads everything in one snapshot, but for what takes too long.
func (s *SQLite) overviewFacts(ctx context.Context) (*overviewFacts, error) {
	facts := &overviewFacts{}
	err := s.read(ctx, "look at the job", func(tx *gorm.DB) error {
		*facts = overviewFacts{}
		if err := tx.Raw(sqliteFactsSQL).Scan(facts).Error; err != nil {
			return err
		}
		var fresh bool
		if err := tx.Raw(sqliteAnyFreshSQL).Scan(&fresh).Error; err != nil {
			return err
		}
		facts.anyFresh = &fresh
		var due *int64
		if err := tx.Raw(sqliteOldestDueSQL).Scan(&due).Error; err != nil {
			return err
		}
		if due != nil {
			facts.due = max(0, time.Duration(*due)*time.Microsecond)
		}
		return countOpen(ctx, tx, facts)
	})
	return facts, err
}

// countOpen counts the rows that are held or wait, if that can be done in time.
func countOpen(ctx context.Context, tx *gorm.DB, facts *overviewFacts) error {
	facts.open = noneOpen()
	limited, cancel := context.WithTimeout(ctx, openBudget)
	defer cancel()
	var rows []openCount
	err := tx.WithContext(limited).Raw(sqliteOpenSQL).Scan(&rows).Error
	if err != nil && (errors.Is(err, context.DeadlineExceeded) || limited.Err() != nil && ctx.Err() == nil) {
		facts.lacks(model.Expired, model.InFlight, model.Waiting)
		return nil
	}
	facts.count(rows)
	return err
}

const sqliteFactsSQL = `
SELECT
	(SELECT min(id) FROM datasets) AS first,
	(SELECT max(id) FROM datasets) AS last,
	l.inserted + t.added AS total,
	l.ids + t.ids AS ids,
	t.done AS done,
	t.failed AS failed,
	t.lately AS lately
FROM (
	SELECT
		coalesce(sum(done), 0) AS done,
		coalesce(sum(failed), 0) AS failed,
		coalesce(sum(added), 0) AS added,
		coalesce(sum(ids), 0) AS ids,
		coalesce(sum(done + failed) FILTER (WHERE at > ` + nowSQL + ` - 60000000), 0) AS lately
	FROM tallies
) AS t
CROSS JOIN (
	SELECT
		coalesce(sum(inserted), 0) AS inserted,
		coalesce(sum(inserted + duplicates + changed), 0) AS ids
	FROM loads
) AS l`

// sqliteOpenSQL counts the rows that are held or wait, by the partial index.
const sqliteOpenSQL = `
SELECT
	CASE
		WHEN d.checked_out_by IS NULL AND d.available_at > ` + nowSQL + ` THEN 'waiting'
		WHEN d.checked_out_by IS NULL THEN 'fresh'
		WHEN d.available_at > ` + nowSQL + ` THEN 'in_flight'
		ELSE 'expired'
	END AS state,
	count(*) AS n,
	(min(d.available_at) - ` + nowSQL + `) / 1e6 AS next
FROM datasets AS d
WHERE NOT d.is_processed
	AND d.available_at > 0
GROUP BY 1`

const sqliteOldestDueSQL = `
SELECT ` + nowSQL + ` - available_at
FROM datasets
WHERE NOT is_processed
	AND available_at > 0
ORDER BY available_at
LIMIT 1`

const sqliteAnyFreshSQL = `
SELECT EXISTS (
	SELECT 1
	FROM datasets
	WHERE NOT is_processed
		AND available_at = 0
)`

// sampleStates counts the rows ids by state, one look by the primary key each.
func (s *SQLite) sampleStates(ctx context.Context, ids []int64) (Counts, error) {
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	var rows []stateCount
	err = s.read(ctx, "look at the job", func(tx *gorm.DB) error {
		rows = nil
		return tx.Raw(fmt.Sprintf(sqliteCountsSQL, `d.id IN (SELECT value FROM json_each(?))`), string(list)).Scan(&rows).Error
	})
	return countsOf(rows), err
}
