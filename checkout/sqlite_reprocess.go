package checkout

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"gorm.io/gorm"
)

// Reprocess puts the selected rows back, chunk by chunk; by says who asked for
// it. A live claim is never cut: such a row begins its next round at its
// check-in. Results stay readable until the next ones are checked in.
func (s *SQLite) Reprocess(ctx context.Context, sel Selection, by string) (Reprocessed, error) {
	var out Reprocessed
	if err := sel.validate(); err != nil {
		return out, err
	}
	var run struct{ ID, CreatedAt int64 }
	err := s.write(ctx, "begin a run", func(tx *gorm.DB) error {
		return tx.Raw(`INSERT INTO runs (kind, selection, created_by)
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
	return out, s.write(ctx, "end a run", func(tx *gorm.DB) error {
		return tx.Exec(`UPDATE runs SET put_back = ?, deferred = ?, finished_at = `+nowSQL+` WHERE id = ?`,
			out.PutBack, out.Deferred, out.Run).Error
	})
}

func (s *SQLite) reprocessScan(ctx context.Context, sel Selection, began int64, out *Reprocessed) error {
	after := int64(-1 << 62)
	scan := fmt.Sprintf(`SELECT d.id FROM datasets AS d WHERE d.id > @after AND %s ORDER BY d.id LIMIT %d`, sel.condition(), chunk)
	for {
		var ids []int64
		var done []bool
		err := s.write(ctx, "reprocess", func(tx *gorm.DB) error {
			var found []int64
			err := tx.Raw(scan, sql.Named("after", after), sql.Named("began", began)).Scan(&found).Error
			if err != nil {
				return err
			}
			deferred, err := s.putBack(tx, sel, began, out.Run, found)
			ids, done = found, deferred
			return err
		})
		if err != nil || len(ids) == 0 {
			return err
		}
		out.count(done)
		after = ids[len(ids)-1]
	}
}

func (s *SQLite) reprocessKeys(ctx context.Context, sel Selection, began int64, out *Reprocessed) error {
	keys := cleanKeys(sel.Keys)
	for len(keys) > 0 {
		part := keys[:min(len(keys), chunk)]
		keys = keys[len(part):]
		var done []bool
		var missing []string
		err := s.write(ctx, "reprocess", func(tx *gorm.DB) error {
			ids, none, err := sqliteIDsOf(ctx, tx, part)
			if err != nil {
				return err
			}
			deferred, err := s.putBack(tx, sel, began, out.Run, ids)
			done, missing = deferred, none
			return err
		})
		if err != nil {
			return err
		}
		out.count(done)
		out.Missing = append(out.Missing, missing...)
	}
	return nil
}

func sqliteIDsOf(ctx context.Context, tx *gorm.DB, keys []string) (ids []int64, missing []string, err error) {
	lookUp, err := prepare(ctx, tx, `SELECT id FROM dataset_keys WHERE key = ?`)
	if err != nil {
		return nil, nil, err
	}
	defer lookUp.Close()
	for _, key := range keys {
		var id int64
		switch err := lookUp.QueryRowContext(ctx, key).Scan(&id); err {
		case nil:
			ids = append(ids, id)
		case sql.ErrNoRows:
			missing = append(missing, key)
		default:
			return nil, nil, err
		}
	}
	return ids, missing, nil
}

func (s *SQLite) putBack(tx *gorm.DB, sel Selection, began, run int64, ids []int64) ([]bool, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	var deferred []bool
	err = tx.Raw(fmt.Sprintf(sqlitePutBackSQL, sel.condition()),
		sql.Named("ids", string(list)),
		sql.Named("run", run),
		sql.Named("began", began),
	).Scan(&deferred).Error
	return deferred, err
}

const sqliteLiveSQL = `(NOT d.is_processed AND d.checked_out_by IS NOT NULL AND d.available_at > ` + nowSQL + `)`

// sqlitePutBackSQL leaves a live claim alone and marks the row. An expired claim
// that is put back gets a new token, so that its worker, should it wake, finds
// its ticket stale.
const sqlitePutBackSQL = `
UPDATE datasets AS d
SET
	is_processed = 0,
	available_at = CASE WHEN ` + sqliteLiveSQL + ` THEN d.available_at ELSE 0 END,
	checkouts = d.checkouts + CASE WHEN ` + sqliteLiveSQL + ` OR d.is_processed OR d.checked_out_by IS NULL THEN 0 ELSE 1 END,
	checked_out_by = CASE WHEN ` + sqliteLiveSQL + ` THEN d.checked_out_by END,
	attempts = CASE WHEN ` + sqliteLiveSQL + ` THEN d.attempts ELSE 0 END,
	losses = CASE WHEN ` + sqliteLiveSQL + ` THEN d.losses ELSE 0 END,
	refunds = CASE WHEN ` + sqliteLiveSQL + ` THEN d.refunds ELSE 0 END,
	round = d.round + CASE WHEN ` + sqliteLiveSQL + ` THEN 0 ELSE 1 END,
	last_error = CASE WHEN ` + sqliteLiveSQL + ` THEN d.last_error END,
	run_id = CASE WHEN ` + sqliteLiveSQL + ` THEN d.run_id ELSE @run END,
	redo_run = CASE WHEN ` + sqliteLiveSQL + ` THEN @run END
WHERE d.id IN (SELECT value FROM json_each(@ids ))
	AND %s
RETURNING redo_run IS NOT NULL`

// Count counts the rows that a selection would put back now, by state.
func (s *SQLite) Count(ctx context.Context, sel Selection) (Counts, error) {
	if err := sel.validate(); err != nil {
		return nil, err
	}
	where := sel.condition()
	args := []any{sql.Named("began", int64(1<<62))}
	if len(sel.Keys) > 0 {
		list, err := json.Marshal(cleanKeys(sel.Keys))
		if err != nil {
			return nil, err
		}
		where += `AND d.id IN (SELECT k.id FROM dataset_keys AS k WHERE k.key IN (SELECT value FROM json_each(@keys )))`
		args = append(args, sql.Named("keys", string(list)))
	}
	return s.count(ctx, where, args...)
}

// Counts counts all rows by state.
func (s *SQLite) Counts(ctx context.Context) (Counts, error) {
	return s.count(ctx, "1")
}

func (s *SQLite) count(ctx context.Context, where string, args ...any) (Counts, error) {
	var rows []stateCount
	err := s.read(ctx, "count", func(tx *gorm.DB) error {
		return tx.Raw(fmt.Sprintf(sqliteCountsSQL, where), args...).Scan(&rows).Error
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
