package checkout

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/windrow-go/windrow/internal/txn"
)

// genericUse tells when the server runs a statement by its generic plan.
type genericUse int

const (
	never genericUse = iota
	ifCheaper
	always
)

// planningCost is what the server adds, in its units of cost, to each plan made
// for certain arguments when it compares them with the generic one: at least this
// much, with the default cpu_operator_cost. (1,000 of these, for each relation and
// once more.)
const planningCost = 5

// planFacts are what a plan and its cure are judged by.
type planFacts struct {
	rows     int64 // an estimate
	middle   int64 // an id amid the table
	generic  genericUse
	analyzed bool
	byIndex  bool            // index scans are allowed by the settings
	indexes  map[string]bool // those of the table: whether they can be used
	settings []string        // of the planner, that are not the default
}

func (s *Postgres) planFacts(ctx context.Context) (*planFacts, error) {
	mode, err := s.execMode(ctx)
	if err != nil {
		return nil, explain("check plans", err)
	}
	var f planFacts
	var cacheMode string
	type index struct {
		Name   string
		Usable bool
	}
	var indexes []index
	table := pgx.NamedArgs{"table": s.sql.schema + ".datasets"}
	err = s.inOneTrip(ctx, "check plans",
		txn.Statement{SQL: `SET TRANSACTION READ ONLY`},
		txn.Statement{SQL: tableFactsSQL, Args: []any{table}, Rows: func(rows pgx.Rows) error {
			if !rows.Next() {
				return nil
			}
			return rows.Scan(&f.rows, &f.analyzed, &f.byIndex, &cacheMode)
		}},
		txn.Statement{SQL: tableIndexesSQL, Args: []any{table}, Rows: func(rows pgx.Rows) (err error) {
			indexes, err = pgx.CollectRows(rows, pgx.RowToStructByPos[index])
			return err
		}},
		txn.Statement{SQL: plannerSettingsSQL, Rows: into(&f.settings)},
		txn.Statement{SQL: fmt.Sprintf(middleSQL, s.sql.schema), Rows: func(rows pgx.Rows) error {
			if !rows.Next() {
				return nil
			}
			return rows.Scan(&f.middle)
		}},
	)
	f.indexes = make(map[string]bool, len(indexes))
	for _, i := range indexes {
		f.indexes[i.Name] = i.Usable
	}
	f.generic = genericUseOf(cacheMode, mode)
	return &f, err
}

// tableFactsSQL estimates the rows as the planner does: rows per page when last
// counted times pages now; 20 a page if they were never counted.
const tableFactsSQL = `
SELECT
	CAST(
		pg_relation_size(c.oid) / CAST(current_setting('block_size') AS integer) *
		CASE WHEN c.relpages > 0 AND c.reltuples > 0 THEN c.reltuples / c.relpages ELSE 20 END
	AS bigint),
	s.last_analyze IS NOT NULL OR s.last_autoanalyze IS NOT NULL,
	current_setting('enable_indexscan') = 'on',
	coalesce(current_setting('plan_cache_mode', true), 'auto')
FROM pg_class AS c
LEFT JOIN pg_stat_user_tables AS s ON s.relid = c.oid
WHERE c.oid = CAST(CAST(@table AS text) AS regclass)`

const tableIndexesSQL = `
SELECT CAST(i.relname AS text), x.indisvalid AND x.indisready
FROM pg_index AS x
JOIN pg_class AS i ON i.oid = x.indexrelid
WHERE x.indrelid = CAST(CAST(@table AS text) AS regclass)`

const plannerSettingsSQL = `
SELECT name || ' = ' || setting
FROM pg_settings
WHERE (name LIKE 'enable\_%' OR name LIKE '%\_cost' OR name = 'plan_cache_mode')
	AND setting IS DISTINCT FROM boot_val
ORDER BY name`

// middleSQL reads both ends of the primary key, and the whole table if that is gone.
const middleSQL = `SELECT coalesce((min(id) + max(id)) / 2, 0) FROM %s.datasets`

// execMode is how the driver sends statements.
func (s *Postgres) execMode(ctx context.Context) (mode pgx.QueryExecMode, err error) {
	pool, err := s.db.DB()
	if err != nil {
		return 0, err
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	err = conn.Raw(func(driverConn any) error {
		mode = driverConn.(*stdlib.Conn).Conn().Config().DefaultQueryExecMode
		return nil
	})
	return mode, err
}

// genericUseOf: left to itself, the server thinks of a generic plan only from the
// sixth time on that it is asked to run the same prepared statement.
func genericUseOf(planCacheMode string, mode pgx.QueryExecMode) genericUse {
	switch {
	case mode == pgx.QueryExecModeSimpleProtocol || planCacheMode == "force_custom_plan":
		return never
	case planCacheMode == "force_generic_plan":
		return always
	case mode == pgx.QueryExecModeCacheStatement:
		return ifCheaper
	default:
		return never
	}
}

// planCure says what to do about a plan that does not go by index.
func (s *Postgres) planCure(f *planFacts, index string, generic bool) string {
	table := s.sql.schema + ".datasets"
	usable, there := f.indexes[index]
	switch {
	case !there && index == keyIndex:
		return fmt.Sprintf("the index %s is missing: ALTER TABLE %s ADD CONSTRAINT %s PRIMARY KEY (id)", index, table, index)
	case !there:
		return fmt.Sprintf("the index %s is missing: CREATE INDEX CONCURRENTLY %s ON %s (available_at, id) WHERE NOT is_processed", index, index, table)
	case !usable:
		return fmt.Sprintf("the index %s is not valid: REINDEX INDEX CONCURRENTLY %s.%s", index, s.sql.schema, index)
	case !f.byIndex:
		return "the setting enable_indexscan is off: turn it on, for windrow's role at least"
	case !f.analyzed:
		return "ANALYZE " + table
	case generic:
		return "ALTER ROLE CURRENT_USER SET plan_cache_mode = force_custom_plan, as windrow's role; or ANALYZE " + table
	case len(f.settings) > 0:
		return fmt.Sprintf("ANALYZE %s; if that does not help, look at the planner's settings that are not the default: %s",
			table, strings.Join(f.settings, ", "))
	default:
		return "ANALYZE " + table
	}
}
