package checkout

import (
	"context"
	"database/sql"
	"fmt"

	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/txn"
)

// checkInWithEffects stores the columns and runs the effects of the rows that it
// changed, in one transaction, and returns what was not accepted.
//
// It keeps out of the pipelines' turn: they would wait for what the effects do.
func (s *Postgres) checkInWithEffects(ctx context.Context, cols *checkInColumns) (left *checkInColumns, err error) {
	var accepted []int64
	err = settling{transact: txn.ReadCommitted, store: func(tx *gorm.DB) ([]effect, error) {
		got, err := s.checkInOpenly(ctx, tx, cols)
		if err != nil {
			return nil, err
		}
		accepted = got
		return cols.effectsOf(got), nil
	}}.run(ctx, s.db, s.opts)
	return cols.rest(accepted), err
}

// checkInOpenly is the check-in's UPDATE in a transaction that goes on. It leaves
// the settings that make the server plan it as meant to nobody else.
func (s *Postgres) checkInOpenly(ctx context.Context, tx *gorm.DB, cols *checkInColumns) ([]int64, error) {
	if err := tx.Exec(settleEffectsSQL).Error; err != nil {
		return nil, err
	}
	rows, err := tx.Statement.ConnPool.QueryContext(ctx, s.sql.checkIn, cols.args())
	if err != nil {
		return nil, err
	}
	accepted, err := scanIDs(rows, len(cols.ids))
	if err != nil {
		return nil, err
	}
	return accepted, tx.Exec(unsettleSQL).Error
}

// settleEffectsSQL also bounds how long the server keeps the transaction of an
// effect that does not go on, and with it the locks and the old snapshot.
var settleEffectsSQL = settleCheckIn.SQL + fmt.Sprintf(`,
	set_config('idle_in_transaction_session_timeout', '%dms', true)`, mostIdle.Milliseconds())

// unsettleSQL takes the planner's settings back: NULL is the session's own value.
const unsettleSQL = `
SELECT
	set_config('jit', NULL, true),
	set_config('enable_seqscan', NULL, true),
	set_config('enable_bitmapscan', NULL, true),
	set_config('enable_hashjoin', NULL, true),
	set_config('enable_mergejoin', NULL, true)`

// scanIDs reads and closes rows of up to n ids.
func scanIDs(rows *sql.Rows, n int) ([]int64, error) {
	defer rows.Close()
	ids := make([]int64, 0, n)
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// effectsOf returns the effects of the accepted rows in the order of ids. Of two
// tickets for one row only the newer can have been accepted: it comes last.
func (c *checkInColumns) effectsOf(accepted []int64) []effect {
	taken := setOf(accepted)
	var due []effect
	for i, in := range c.batch {
		if taken[in.ID] && !c.overtaken(i) {
			due = appendEffect(due, in)
		}
	}
	return due
}
