package checkout

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/txn"
)

// LatestLoad returns the newest load of source, or ErrNotFound.
func (s *Postgres) LatestLoad(ctx context.Context, source string) (Load, error) {
	var loads []Load
	err := s.readCommitted(ctx, "look up loads", func(tx *gorm.DB) error {
		return tx.Raw(`SELECT id, source, records, digest, inserted, duplicates, changed, rejected, finished_at
			FROM `+s.sql.schema+`.loads WHERE source = ? ORDER BY id DESC LIMIT 1`, source).Scan(&loads).Error
	})
	if err != nil {
		return Load{}, err
	}
	if len(loads) == 0 {
		return Load{}, ErrNotFound
	}
	return loads[0], nil
}

// BeginLoad enters a new load of source, after the load that LatestLoad has named
// (0: none). ErrLoadMoved says that somebody else has entered one meanwhile.
func (s *Postgres) BeginLoad(ctx context.Context, source string, after int64) (Load, error) {
	load := Load{Source: source}
	err := s.readCommitted(ctx, "begin a load", func(tx *gorm.DB) error {
		// Two that begin at once take turns; the lock goes with the transaction.
		if err := tx.Exec(`SELECT pg_advisory_xact_lock(?, hashtext(?))`, s.light, "load:"+source).Error; err != nil {
			return err
		}
		var latest int64
		err := tx.Raw(`SELECT coalesce(max(id), 0) FROM `+s.sql.schema+`.loads WHERE source = ?`, source).Scan(&latest).Error
		if err != nil {
			return err
		}
		if latest != after {
			return ErrLoadMoved
		}
		return tx.Raw(`INSERT INTO `+s.sql.schema+`.loads (source) VALUES (?) RETURNING id`, source).Scan(&load.ID).Error
	})
	return load, err
}

// Sources names the inputs that have brought rows; an empty name stands for rows
// that came without a load.
func (s *Postgres) Sources(ctx context.Context) ([]string, error) {
	var sources []string
	err := s.readCommitted(ctx, "look up loads", func(tx *gorm.DB) error {
		return tx.Raw(strings.ReplaceAll(sourcesSQL, "{schema}", s.sql.schema)).Scan(&sources).Error
	})
	return sources, err
}

const sourcesSQL = `
SELECT DISTINCT source
FROM {schema}.loads
WHERE inserted > 0
UNION ALL
SELECT ''
WHERE EXISTS (SELECT 1 FROM {schema}.datasets)
	AND NOT EXISTS (SELECT 1 FROM {schema}.loads WHERE inserted > 0)`

// Append adds the rows of a chunk, and of those that follow it, and moves the load
// forward, in one transaction, and wakes workers that wait. Rows have a key all of them
// or none. ErrLoadMoved says that load is no longer how the database has it.
func (s *Postgres) Append(ctx context.Context, load *Load, c Chunk) error {
	var next Load
	err := txn.Retry(ctx, s.opts.policy("load"), func() error {
		last := c
		err := txn.PGX(ctx, s.db, func(tx pgx.Tx) (err error) {
			moved := *load
			if last, err = s.insert(ctx, tx, c, &moved); err != nil {
				return err
			}
			if err := s.moveLoad(ctx, tx, load, &moved, last); err != nil {
				return err
			}
			next = moved
			end := `NOTIFY ` + s.channel
			if !last.Last {
				end += `; ` + commitLater
			}
			_, err = tx.Exec(ctx, end, pgx.QueryExecModeSimpleProtocol)
			return err
		})
		if err != nil && last.Records != c.Records { // what followed can't be had again
			return backoff.Permanent(err)
		}
		return err
	})
	if err != nil {
		return explain("load", err)
	}
	*load = next
	return nil
}

// commitLater lets all chunks but the last commit without waiting for the disk, while
// the next one comes in. A server that crashes loses the latest of them, rows and
// position together, and the load goes on from there. Who checks such rows out, or
// stores the last chunk, waits for all of them.
const commitLater = `SET LOCAL synchronous_commit = off`

// moveLoad: the optimistic predicate is the position read so far.
func (s *Postgres) moveLoad(ctx context.Context, tx pgx.Tx, old, moved *Load, c Chunk) error {
	moved.Records, moved.Rejected, moved.Digest = c.Records, c.Rejected, c.Digest
	err := tx.QueryRow(ctx, `
		UPDATE `+s.sql.schema+`.loads
		SET
			records = $2,
			rejected = $3,
			digest = $4,
			inserted = $5,
			duplicates = $6,
			changed = $7,
			finished_at = CASE WHEN $8 THEN clock_timestamp() END
		WHERE id = $1
			AND records = $9
			AND inserted + duplicates + changed = $10
		RETURNING finished_at`,
		old.ID, moved.Records, moved.Rejected, moved.Digest, moved.Inserted, moved.Duplicates, moved.Changed,
		c.Last, old.Records, old.Inserted+old.Duplicates+old.Changed).Scan(&moved.FinishedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrLoadMoved
	}
	return err
}

// insert returns the last chunk that it has taken, also with an error.
func (s *Postgres) insert(ctx context.Context, tx pgx.Tx, c Chunk, moved *Load) (last Chunk, err error) {
	switch {
	case len(c.Rows) == 0:
		return c, nil
	case c.Rows[0].Key == nil:
		return s.copyChunks(ctx, tx, c, moved)
	}
	unique, duplicates, changed := dedupe(c.Rows)
	moved.Duplicates += duplicates
	moved.Changed += changed
	return c, s.insertKeyed(ctx, tx, unique, moved)
}

// copyChunks streams rows without keys in by COPY, as many chunks as are there. Each
// COPY searches buffers of its own, and keeps to them: two million rows took 26 s in
// COPYs of 10,000, and 15 s in COPYs of 160,000.
func (s *Postgres) copyChunks(ctx context.Context, tx pgx.Tx, c Chunk, moved *Load) (last Chunk, err error) {
	take := func() *Chunk {
		if c.Next == nil {
			return nil
		}
		if n, ok := c.Next(); ok {
			return &n
		}
		return nil
	}
	for next := &c; next != nil; {
		last = *next
		if next, err = s.copyAlike(ctx, tx, &last, take, moved); err != nil {
			break
		}
	}
	return last, err
}

// copyAlike copies last and those after it, and leaves the last of them in it. Due times
// are sent only where there are some: they can't be compared with the server's clock on
// the way. A chunk that differs in that is returned instead.
func (s *Postgres) copyAlike(ctx context.Context, tx pgx.Tx, last *Chunk, take func() *Chunk, moved *Load) (other *Chunk, err error) {
	delayed := anyDelayed(last.Rows)
	columns := []string{"data"}
	values := func(row NewRow) []any { return []any{row.Data} }
	if delayed {
		var now time.Time
		if err := tx.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now); err != nil {
			return nil, err
		}
		columns = append(columns, "available_at")
		values = func(row NewRow) []any { return []any{row.Data, row.vestingTime(now)} }
	}
	rows := last.Rows
	next := func() ([]any, error) {
		for len(rows) == 0 {
			following := take()
			if following == nil {
				return nil, nil
			}
			if len(following.Rows) > 0 && anyDelayed(following.Rows) != delayed {
				other = following
				return nil, nil
			}
			*last, rows = *following, following.Rows
		}
		row := rows[0]
		rows = rows[1:]
		return values(row), nil
	}
	n, err := tx.CopyFrom(ctx, pgx.Identifier{s.opts.Schema, "datasets"}, columns, pgx.CopyFromFunc(next))
	moved.Inserted += n
	return other, err
}

// insertKeyed adds the rows whose keys are new, in the order given, and compares
// the others with what is there. Keys are inserted in their own order, so that
// two loads at once don't deadlock on them.
func (s *Postgres) insertKeyed(ctx context.Context, tx pgx.Tx, rows []NewRow, moved *Load) error {
	first, err := s.reserveIDs(ctx, tx, len(rows))
	if err != nil {
		return err
	}
	ids := make([]int64, len(rows))
	keys := make([]string, len(rows))
	data := make([]json.RawMessage, len(rows))
	var due []time.Time // null: none has one
	if anyDelayed(rows) {
		due = make([]time.Time, len(rows))
	}
	order := make([]int, len(rows))
	for i := range rows {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(*rows[a].Key, *rows[b].Key) })
	for i, k := range order {
		ids[i], keys[i], data[i] = first[k], *rows[k].Key, rows[k].Data
		if due != nil {
			due[i] = rows[k].AvailableAt
		}
	}
	var inserted int64
	if err := tx.QueryRow(ctx, s.sql.insertKeyed, ids, keys, data, due).Scan(&inserted); err != nil {
		return err
	}
	moved.Inserted += inserted
	if inserted == int64(len(rows)) {
		return nil
	}
	var changed int64
	if err := tx.QueryRow(ctx, s.sql.compareKeyed, ids, keys, data).Scan(&changed); err != nil {
		return err
	}
	moved.Changed += changed
	moved.Duplicates += int64(len(rows)) - inserted - changed
	return nil
}

func (s *Postgres) reserveIDs(ctx context.Context, tx pgx.Tx, n int) ([]int64, error) {
	rows, err := tx.Query(ctx,
		`SELECT nextval(pg_get_serial_sequence($1, 'id')) FROM generate_series(1, $2)`,
		s.sql.schema+".datasets", n)
	if err != nil {
		return nil, err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	slices.Sort(ids)
	return ids, err
}

// insertKeyedSQL takes null for the due times where none of the rows has one.
const insertKeyedSQL = `
WITH input AS (
	SELECT *
	FROM unnest($1::bigint[], $2::text[], $3::jsonb[], $4::timestamptz[]) AS i (id, key, data, available_at)
), new_keys AS (
	INSERT INTO {schema}.dataset_keys (key, id)
	SELECT key, id
	FROM input
	ON CONFLICT (key) DO NOTHING
	RETURNING id
), new_rows AS (
	INSERT INTO {schema}.datasets (id, key, data, available_at)
	SELECT
		input.id,
		input.key,
		input.data,
		CASE WHEN input.available_at > clock_timestamp() THEN input.available_at ELSE TIMESTAMPTZ 'epoch' END
	FROM input
	JOIN new_keys USING (id)
	ORDER BY input.id
	RETURNING id
)
SELECT count(*) FROM new_rows`

const compareKeyedSQL = `
SELECT count(*)
FROM unnest($1::bigint[], $2::text[], $3::jsonb[]) AS i (id, key, data)
JOIN {schema}.dataset_keys AS k ON k.key = i.key AND k.id <> i.id
JOIN {schema}.datasets AS d ON d.id = k.id
WHERE d.data <> i.data`

// Analyze refreshes the planner's statistics after a load. It reports false if
// this role may not analyze the table.
func (s *Postgres) Analyze(ctx context.Context) (bool, error) {
	var mayNot bool
	err := s.db.WithContext(ctx).Raw(ownsTableSQL, sql.Named("name", s.opts.Schema+".datasets")).Scan(&mayNot).Error
	if err != nil || mayNot {
		return false, explain("analyze", err)
	}
	err = s.db.WithContext(ctx).Exec(`ANALYZE ` + s.sql.schema + `.datasets`).Error
	var server *pgconn.PgError
	if errors.As(err, &server) && server.Code == "42501" {
		return false, nil
	}
	return err == nil, explain("analyze", err)
}

// ownsTableSQL: only the owner, the database's owner and superusers may analyze;
// for others ANALYZE passes the table over with a mere warning.
const ownsTableSQL = `
SELECT NOT (
	pg_has_role(c.relowner, 'USAGE')
	OR (SELECT pg_has_role(d.datdba, 'USAGE') FROM pg_database AS d WHERE d.datname = current_database())
)
FROM pg_class AS c
WHERE c.oid = CAST(@name AS regclass)`
