package bench

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/windrow-go/windrow/internal/txn"
)

// reference is a worker that does the same two writes a row as windrow, by plain
// statements of its own on one connection.
type reference struct {
	task
	conn   *pgx.Conn
	rec    *recorder
	holder string
}

func newReference(ctx context.Context, t task, rec *recorder) (*reference, error) {
	conn, err := pgx.Connect(ctx, t.Address)
	if err != nil {
		return nil, err
	}
	return &reference{task: t, conn: conn, rec: rec, holder: fmt.Sprintf("reference/%d", os.Getpid())}, nil
}

func (r *reference) sql(text string) string {
	return strings.ReplaceAll(text, "{table}", pgx.Identifier{r.Schema, "datasets"}.Sanitize())
}

// taken is what a claim of a reference brings.
type taken struct {
	ids    []int64
	tokens []int32
}

func (b *taken) scan(rows pgx.Rows) error {
	var id int64
	var data []byte
	var token int32
	_, err := pgx.ForEachRow(rows, []any{&id, &data, &token}, func() error {
		b.ids, b.tokens = append(b.ids, id), append(b.tokens, token)
		return nil
	})
	return err
}

// claimSet is what every claim writes.
const claimSet = `
SET
	available_at = clock_timestamp() + interval '60 s',
	last_checkout = clock_timestamp(),
	checked_out_by = $2,
	checkouts = d.checkouts + 1,
	attempts = d.attempts + 1`

const claimReturning = `
RETURNING d.id, d.data, d.checkouts`

const completeSQL = `
UPDATE {table} AS d
SET
	is_processed = true,
	processed_at = clock_timestamp(),
	result = CAST('{"ok": true}' AS jsonb)
FROM unnest(CAST($1 AS bigint[]), CAST($2 AS integer[])) AS u (id, token)
WHERE d.id = u.id AND d.checkouts = u.token AND d.checked_out_by = $3`

func (r *reference) complete(ctx context.Context, b taken) error {
	tag, err := r.conn.Exec(ctx, r.sql(completeSQL), b.ids, b.tokens, r.holder)
	if err != nil {
		return err
	}
	r.rec.finished(int(tag.RowsAffected()))
	return nil
}

// claimOnce runs one claim and times it.
func (r *reference) claimOnce(ctx context.Context, text string, args ...any) (taken, error) {
	began := time.Now()
	var b taken
	rows, err := r.conn.Query(ctx, r.sql(text), args...)
	if err == nil {
		err = b.scan(rows)
	}
	if err != nil {
		return b, err
	}
	r.rec.checkedOut(began, len(b.ids))
	return b, nil
}

// settled keeps the planner to the indexes, as windrow's own transactions do.
const settled = `
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_sort = off`

// prepareLimit is what the server can do at most: the two batched writes a row,
// each worker over a range of ids of its own, with no coordination at all.
func prepareLimit(ctx context.Context, t task, rec *recorder) (func(context.Context) error, error) {
	r, err := newReference(ctx, t, rec)
	if err != nil {
		return nil, err
	}
	if _, err := r.conn.Exec(ctx, settled); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		step := int64(t.Batch)
		for from := t.From; from < t.To; from += step {
			b, err := r.claimOnce(ctx, limitSQL, idsFrom(from, min(from+step, t.To)), r.holder)
			if err != nil {
				return err
			}
			if err := r.complete(ctx, b); err != nil {
				return err
			}
		}
		return r.conn.Close(ctx)
	}, nil
}

const limitSQL = `
UPDATE {table} AS d` + claimSet + `
WHERE d.id = ANY(CAST($1 AS bigint[]))` + claimReturning

func idsFrom(from, to int64) []int64 {
	ids := make([]int64, 0, to-from)
	for id := from; id < to; id++ {
		ids = append(ids, id)
	}
	return ids
}

// prepareSkipLocked is the usual queue: READ COMMITTED, the head of the queue, FOR
// UPDATE SKIP LOCKED, and batched completion.
func prepareSkipLocked(ctx context.Context, t task, rec *recorder) (func(context.Context) error, error) {
	return prepareQueue(ctx, t, rec, "read committed", fmt.Sprintf(headSQL, "FOR UPDATE SKIP LOCKED"))
}

// prepareNaive is the plain serializable loop: the first unprocessed row, again
// when somebody else was quicker.
func prepareNaive(ctx context.Context, t task, rec *recorder) (func(context.Context) error, error) {
	return prepareQueue(ctx, t, rec, "serializable", fmt.Sprintf(headSQL, ""))
}

// prepareQueue claims from the head of the queue and completes, until nothing is
// left. The scenario says how many rows at a time.
func prepareQueue(ctx context.Context, t task, rec *recorder, isolation, claim string) (func(context.Context) error, error) {
	r, err := newReference(ctx, t, rec)
	if err != nil {
		return nil, err
	}
	if _, err := r.conn.Exec(ctx, `SELECT set_config('default_transaction_isolation', $1, false)`, isolation); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		for {
			var b taken
			err := r.untilWon(ctx, "check out", func() (err error) {
				b, err = r.claimOnce(ctx, claim, t.Batch, r.holder)
				return err
			})
			if err != nil {
				return err
			}
			if len(b.ids) == 0 {
				return r.conn.Close(ctx)
			}
			if err := r.untilWon(ctx, "check in", func() error { return r.complete(ctx, b) }); err != nil {
				return err
			}
		}
	}, nil
}

const headSQL = `
UPDATE {table} AS d` + claimSet + `
WHERE d.id IN (
	SELECT id
	FROM {table}
	WHERE NOT is_processed AND available_at <= now()
	ORDER BY available_at, id
	LIMIT $1
	%s
)` + claimReturning

func (r *reference) untilWon(ctx context.Context, op string, try func() error) error {
	policy := txn.Policy{Tries: 1_000_000, OnConflict: func(reason txn.Reason) { r.rec.conflict(op, string(reason)) }}
	err := txn.Retry(ctx, policy, try)
	if pgconn.Timeout(err) {
		return context.DeadlineExceeded
	}
	return err
}
