package checkout

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"gorm.io/gorm"
)

type sqliteLoad struct {
	ID         int64
	Source     string
	Records    int64
	Digest     string
	Inserted   int64
	Duplicates int64
	Changed    int64
	Rejected   int64
	FinishedAt *int64
}

// LatestLoad returns the newest load of source, or ErrNotFound.
func (s *SQLite) LatestLoad(ctx context.Context, source string) (Load, error) {
	var rows []sqliteLoad
	err := s.read(ctx, "look up loads", func(tx *gorm.DB) error {
		return tx.Raw(`SELECT id, source, records, digest, inserted, duplicates, changed, rejected, finished_at
			FROM loads WHERE source = ? ORDER BY id DESC LIMIT 1`, source).Scan(&rows).Error
	})
	if err != nil {
		return Load{}, err
	}
	if len(rows) == 0 {
		return Load{}, ErrNotFound
	}
	r := rows[0]
	load := Load{
		ID: r.ID, Source: r.Source, Records: r.Records, Digest: r.Digest, Inserted: r.Inserted,
		Duplicates: r.Duplicates, Changed: r.Changed, Rejected: r.Rejected,
	}
	if r.FinishedAt != nil {
		at := instant(*r.FinishedAt)
		load.FinishedAt = &at
	}
	return load, nil
}

// BeginLoad enters a new load of source, after the load that LatestLoad has named
// (0: none). ErrLoadMoved says that somebody else has entered one meanwhile.
func (s *SQLite) BeginLoad(ctx context.Context, source string, after int64) (Load, error) {
	load := Load{Source: source}
	err := s.write(ctx, "begin a load", func(tx *gorm.DB) error {
		var latest int64
		err := tx.Raw(`SELECT coalesce(max(id), 0) FROM loads WHERE source = ?`, source).Scan(&latest).Error
		if err != nil {
			return err
		}
		if latest != after {
			return ErrLoadMoved
		}
		return tx.Raw(`INSERT INTO loads (source) VALUES (?) RETURNING id`, source).Scan(&load.ID).Error
	})
	return load, err
}

// Sources names the inputs that have brought rows; an empty name stands for rows
// that came without a load.
func (s *SQLite) Sources(ctx context.Context) ([]string, error) {
	var sources []string
	err := s.read(ctx, "look up loads", func(tx *gorm.DB) error {
		return tx.Raw(strings.ReplaceAll(sourcesSQL, "{schema}.", "")).Scan(&sources).Error
	})
	return sources, err
}

// Append adds a chunk's rows and moves the load forward, in one transaction.
// Rows have a key all of them or none. ErrLoadMoved says that load is no longer
// how the database has it.
func (s *SQLite) Append(ctx context.Context, load *Load, c Chunk) error {
	var next Load
	err := s.write(ctx, "load", func(tx *gorm.DB) error {
		moved := *load
		if err := sqliteInsert(ctx, tx, c.Rows, &moved); err != nil {
			return err
		}
		if err := sqliteMoveLoad(tx, load, &moved, c); err != nil {
			return err
		}
		next = moved
		return nil
	})
	if err != nil {
		return err
	}
	*load = next
	return nil
}

// sqliteMoveLoad: the optimistic predicate is the position read so far.
func sqliteMoveLoad(tx *gorm.DB, old, moved *Load, c Chunk) error {
	moved.Records, moved.Rejected, moved.Digest = c.Records, c.Rejected, c.Digest
	res := tx.Exec(`
		UPDATE loads
		SET
			records = ?,
			rejected = ?,
			digest = ?,
			inserted = ?,
			duplicates = ?,
			changed = ?,
			finished_at = CASE WHEN ? THEN `+nowSQL+` END
		WHERE id = ?
			AND records = ?
			AND inserted + duplicates + changed = ?`,
		moved.Records, moved.Rejected, moved.Digest, moved.Inserted, moved.Duplicates, moved.Changed, c.Last,
		old.ID, old.Records, old.Inserted+old.Duplicates+old.Changed)
	if res.Error == nil && res.RowsAffected != 1 {
		return ErrLoadMoved
	}
	if c.Last {
		at := time.Now().UTC()
		moved.FinishedAt = &at
	}
	return res.Error
}

func sqliteInsert(ctx context.Context, tx *gorm.DB, rows []NewRow, moved *Load) error {
	switch {
	case len(rows) == 0:
		return nil
	case rows[0].Key == nil:
		return sqliteInsertMany(ctx, tx, rows, moved)
	}
	unique, duplicates, changed := dedupe(rows)
	moved.Duplicates += duplicates
	moved.Changed += changed
	return sqliteInsertKeyed(ctx, tx, unique, moved)
}

// rowsPerInsert is how many rows one prepared INSERT adds: at 100 the cost of a
// statement no longer shows.
const rowsPerInsert = 100

func sqliteInsertMany(ctx context.Context, tx *gorm.DB, rows []NewRow, moved *Load) error {
	columns, values := `data`, `(?)`
	delayed := anyDelayed(rows)
	if delayed {
		columns, values = `data, available_at`, `(?, ?)`
	}
	now, err := sqliteClock(tx)
	if err != nil {
		return err
	}
	many, err := prepare(ctx, tx, `INSERT INTO datasets (`+columns+`) VALUES `+values+strings.Repeat(`, `+values, rowsPerInsert-1))
	if err != nil {
		return err
	}
	defer many.Close()
	one, err := prepare(ctx, tx, `INSERT INTO datasets (`+columns+`) VALUES `+values)
	if err != nil {
		return err
	}
	defer one.Close()
	moved.Inserted += int64(len(rows))
	args := make([]any, 0, 2*rowsPerInsert)
	for len(rows) > 0 {
		insert, n := many, rowsPerInsert
		if len(rows) < n {
			insert, n = one, 1
		}
		args = args[:0]
		for _, row := range rows[:n] {
			args = append(args, string(row.Data))
			if delayed {
				args = append(args, row.vestingTime(now).UnixMicro())
			}
		}
		if _, err := insert.ExecContext(ctx, args...); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// sqliteClock is the database's clock.
func sqliteClock(tx *gorm.DB) (time.Time, error) {
	var micros int64
	err := tx.Raw(`SELECT ` + nowSQL).Scan(&micros).Error
	return instant(micros), err
}

func sqliteInsertKeyed(ctx context.Context, tx *gorm.DB, rows []NewRow, moved *Load) error {
	now, err := sqliteClock(tx)
	if err != nil {
		return err
	}
	insert, err := prepare(ctx, tx, `INSERT INTO datasets (key, data, available_at) VALUES (?, ?, ?) RETURNING id`)
	if err != nil {
		return err
	}
	defer insert.Close()
	enter, err := prepare(ctx, tx, `INSERT INTO dataset_keys (key, id) VALUES (?, ?)`)
	if err != nil {
		return err
	}
	defer enter.Close()
	lookUp, err := prepare(ctx, tx, `SELECT d.data FROM dataset_keys AS k JOIN datasets AS d ON d.id = k.id WHERE k.key = ?`)
	if err != nil {
		return err
	}
	defer lookUp.Close()
	for _, row := range rows {
		var there string
		err := lookUp.QueryRowContext(ctx, *row.Key).Scan(&there)
		switch {
		case err == nil && there == string(row.Data):
			moved.Duplicates++
		case err == nil:
			moved.Changed++
		case errors.Is(err, sql.ErrNoRows):
			err = sqliteEnter(ctx, insert, enter, row, now)
			moved.Inserted++
			if err != nil {
				return err
			}
		default:
			return err
		}
	}
	return nil
}

func sqliteEnter(ctx context.Context, insert, enter *sql.Stmt, row NewRow, now time.Time) error {
	var id int64
	if err := insert.QueryRowContext(ctx, *row.Key, string(row.Data), row.vestingTime(now).UnixMicro()).Scan(&id); err != nil {
		return err
	}
	_, err := enter.ExecContext(ctx, *row.Key, id)
	return err
}

// Analyze refreshes the planner's statistics after a load.
func (s *SQLite) Analyze(ctx context.Context) (bool, error) {
	err := s.write(ctx, "analyze", func(tx *gorm.DB) error {
		return tx.Exec(`PRAGMA analysis_limit = 1000; ANALYZE`).Error
	})
	return err == nil, err
}
