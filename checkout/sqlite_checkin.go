package checkout

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"gorm.io/gorm"

	"github.com/windrow-go/windrow/model"
)

// CheckIn stores a batch of outcomes, each under its ticket. A row whose ticket a
// newer claim has made stale is left alone and named in the receipt. The same
// batch may be sent again.
//
// Effects are run in the same transaction, in the order of ids, for the rows that
// this very call settles: not for those that are lost, and not again for those that
// an earlier, unanswered try has settled. An error that wraps model.ErrEffect means
// that one failed, and that nothing of the batch was stored.
func (s *SQLite) CheckIn(ctx context.Context, batch []model.CheckIn) (model.Receipt, error) {
	var receipt model.Receipt
	if len(batch) == 0 {
		return receipt, nil
	}
	batch = slices.SortedFunc(slices.Values(batch), byTicket)
	if hasEffects(batch) {
		return s.checkInWithEffects(ctx, batch)
	}
	if list, ok := doneList(batch); ok {
		err := s.write(ctx, "check in", func(tx *gorm.DB) error { return checkInDone(tx, batch, list) })
		if !errors.Is(err, errNotAll) {
			return receipt, err
		}
	}
	err := s.write(ctx, "check in", func(tx *gorm.DB) error {
		got, _, err := checkInEach(ctx, tx, batch)
		receipt = got
		return err
	})
	return receipt, err
}

// mostListBytes bounds what is sent as one value. SQLite makes several copies of it, and
// large results gain nothing.
const mostListBytes = 1 << 20

// doneList is the batch as the parameter of sqliteCheckInDoneSQL, if every row of it is
// done, by the same version of the handler, and it isn't large. JSON would not keep what
// is no valid UTF-8.
func doneList(batch []model.CheckIn) (list string, ok bool) {
	if !allDone(batch) {
		return "", false
	}
	rows, size := make([][3]any, len(batch)), 0
	for i, in := range batch {
		result := resultText(in)
		size += len(result)
		if size > mostListBytes || in.Holder != batch[0].Holder || !utf8.ValidString(result) {
			return "", false
		}
		rows[i] = [3]any{in.ID, in.Token, result}
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(rows)
	return text.String(), err == nil
}

// errNotAll rolls a transaction back in which some row was not accepted.
var errNotAll = errors.New("not all rows were accepted")

// checkInDone stores a batch that is done, as nearly all are, by one statement; unless
// some row is not accepted, or wanted again by a run.
func checkInDone(tx *gorm.DB, batch []model.CheckIn, list string) error {
	n, holder := int64(len(batch)), batch[0].Holder
	res := tx.Exec(sqliteCheckInDoneSQL, batch[0].Version, list, holder)
	if res.Error != nil {
		return res.Error
	}
	if res.RowsAffected != n {
		return errNotAll
	}
	sum := tally{writer: holder}
	sum.add(model.VerdictDone, n)
	return sqliteTally(tx, sum)
}

// sqliteCheckInDoneSQL is what sqliteCheckInSQL does for rows that are done and that no
// run wants again.
const sqliteCheckInDoneSQL = `
UPDATE datasets
SET
	is_processed = 1,
	processed_at = ` + nowSQL + `,
	result = u.result,
	error = NULL,
	last_error = NULL,
	version = nullif(?, ''),
	refunds = 0
FROM (SELECT value ->> 0 AS id, value ->> 1 AS token, value ->> 2 AS result FROM json_each(?)) AS u
WHERE datasets.id = u.id
	AND datasets.checkouts = u.token
	AND datasets.checked_out_by = ?
	AND datasets.redo_run IS NULL
	AND +datasets.is_processed = 0`

// checkInEach stores the outcomes and tells whose effects are due by that.
func checkInEach(ctx context.Context, tx *gorm.DB, batch []model.CheckIn) (receipt model.Receipt, due []effect, err error) {
	update, err := prepare(ctx, tx, sqliteCheckInSQL)
	if err != nil {
		return receipt, nil, err
	}
	defer update.Close()
	sum := tally{writer: batch[0].Holder}
	for _, in := range batch {
		var processed bool
		switch err := update.QueryRowContext(ctx, checkInArgs(in)...).Scan(&processed); {
		case errors.Is(err, sql.ErrNoRows):
			if err := sqliteVerdictOn(tx, in.Ticket, &receipt); err != nil {
				return receipt, nil, err
			}
			continue
		case err != nil:
			return receipt, nil, fmt.Errorf("row %d: %w", in.ID, err)
		case processed:
			sum.add(in.Verdict, 1)
		case in.Verdict <= model.VerdictFailed:
			if err := tx.Exec(sqliteKeepSQL, in.ID).Error; err != nil {
				return receipt, nil, err
			}
		}
		due = appendEffect(due, in)
	}
	return receipt, due, sqliteTally(tx, sum)
}

// sqliteKeepSQL keeps the outcome that a next round will replace, if its run wants
// that.
const sqliteKeepSQL = `
INSERT INTO history (id, round, run_id, processed_at, version, error, result)
SELECT d.id, d.round - 1, d.run_id, d.processed_at, d.version, d.error, d.result
FROM datasets AS d
JOIN runs AS r ON r.id = d.run_id
WHERE d.id = ?
	AND r.keep_history
ON CONFLICT DO NOTHING`

// prepare compiles a statement once for the many rows of a transaction; gorm
// would do it for each.
func prepare(ctx context.Context, tx *gorm.DB, query string) (*sql.Stmt, error) {
	return tx.Statement.ConnPool.PrepareContext(ctx, query)
}

func checkInArgs(in model.CheckIn) []any {
	var result, text any
	if in.Verdict == model.VerdictDone {
		result = resultText(in)
	}
	switch {
	case in.Error != "":
		text = in.Error
	case in.Verdict == model.VerdictFailed:
		text = "failed without a reason" // null would read as done
	}
	var version any
	if in.Version != "" {
		version = in.Version
	}
	return []any{
		int(in.Verdict), result, text, max(in.Delay, 0).Microseconds(), version,
		in.ID, in.Token, in.Holder,
	}
}

// sqliteCheckInSQL: ?1 is the verdict (1 done, 2 failed, 3 retry, 4 handler
// unavailable, or, if it comes without an error, released), ?4 the delay in
// microseconds. A row that a run wants again (redo_run) begins its next round at
// once, whatever the verdict; its result stays readable. The optimistic predicate stands last.
const sqliteCheckInSQL = `
UPDATE datasets
SET
	is_processed = ?1 <= 2 AND redo_run IS NULL,
	processed_at = CASE WHEN ?1 <= 2 THEN ` + nowSQL + ` ELSE processed_at END,
	result = CASE WHEN ?1 <= 2 THEN ?2 ELSE result END,
	error = CASE ?1 WHEN 1 THEN NULL WHEN 2 THEN ?3 ELSE error END,
	last_error = CASE
		WHEN redo_run IS NOT NULL THEN NULL
		WHEN ?1 = 4 AND ?3 IS NULL THEN last_error
		ELSE ?3
	END,
	version = CASE WHEN ?1 <= 2 THEN ?5 ELSE version END,
	available_at = CASE
		WHEN redo_run IS NOT NULL THEN 0
		WHEN ?1 <= 2 THEN available_at
		WHEN ?4 > 0 THEN ` + nowSQL + ` + ?4
		ELSE 0
	END,
	checked_out_by = CASE WHEN ?1 <= 2 AND redo_run IS NULL THEN checked_out_by END,
	attempts = CASE
		WHEN redo_run IS NOT NULL THEN 0
		WHEN ?1 = 4 THEN max(attempts - 1, 0)
		ELSE attempts
	END,
	losses = CASE WHEN redo_run IS NULL THEN losses ELSE 0 END,
	refunds = CASE
		WHEN redo_run IS NOT NULL OR ?1 <= 2 THEN 0
		WHEN ?1 = 3 OR ?3 IS NULL THEN refunds
		ELSE refunds + 1
	END,
	round = round + (redo_run IS NOT NULL),
	run_id = coalesce(redo_run, run_id),
	redo_run = NULL
WHERE id = ?6
	AND checkouts = ?7
	AND checked_out_by = ?8
	AND +is_processed = 0
RETURNING is_processed`

// sqliteVerdictOn tells whether a ticket that changed nothing was stored by an
// earlier, unanswered try, or is lost.
func sqliteVerdictOn(tx *gorm.DB, t model.Ticket, receipt *model.Receipt) error {
	var rows []rowStanding
	err := tx.Raw(`SELECT id, checkouts, is_processed, checked_out_by FROM datasets WHERE id = ?`, t.ID).Scan(&rows).Error
	if err != nil {
		return err
	}
	if len(rows) == 1 && rows[0].settledBy(t.Token, t.Holder) {
		receipt.Replayed++
		return nil
	}
	receipt.Lost = append(receipt.Lost, t)
	return nil
}

// Release gives rows back that were not started: available at once, attempt
// refunded. Stale tickets are passed over.
func (s *SQLite) Release(ctx context.Context, tickets []model.Ticket) error {
	_, err := s.CheckIn(ctx, releases(tickets))
	return err
}

// Renew pushes the leases of one holder's claims to lease from now, and returns
// the tickets that a newer claim has made stale.
func (s *SQLite) Renew(ctx context.Context, lease time.Duration, tickets []model.Ticket) ([]model.Ticket, error) {
	if len(tickets) == 0 {
		return nil, s.Ping(ctx)
	}
	ids, tokens, err := ticketColumns(tickets)
	if err != nil {
		return nil, err
	}
	pairs := make([][2]int64, len(ids))
	for i := range ids {
		pairs[i] = [2]int64{ids[i], int64(tokens[i])}
	}
	list, err := json.Marshal(pairs)
	if err != nil {
		return nil, err
	}
	var renewed []int64
	err = s.write(ctx, "renew", func(tx *gorm.DB) error {
		var got []int64
		err := tx.Raw(sqliteRenewSQL, lease.Microseconds(), string(list), tickets[0].Holder).Scan(&got).Error
		renewed = got
		return err
	})
	if err != nil {
		return nil, err
	}
	return ticketsWithout(tickets, renewed), nil
}

const sqliteRenewSQL = `
UPDATE datasets
SET available_at = ` + nowSQL + ` + ?
FROM (SELECT value ->> 0 AS id, value ->> 1 AS token FROM json_each(?)) AS u
WHERE datasets.id = u.id
	AND datasets.checkouts = u.token
	AND datasets.checked_out_by = ?
	AND +datasets.is_processed = 0
RETURNING datasets.id`
