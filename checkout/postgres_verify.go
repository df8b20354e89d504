package checkout

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/txn"
)

// Verify looks at every row, key and counter in one snapshot, and at the indexes and
// plans, and tells what is not as it must be. It takes as long as a pass over the table
// does, in bounded memory, and keeps nobody from working; like any old snapshot it
// keeps dead rows from being removed meanwhile. Nothing but tallies is changed, and
// those only where counters differ and opts don't forbid it.
func (s *Postgres) Verify(ctx context.Context, opts VerifyOptions) (Verification, error) {
	index, usable, err := s.verifyIndexes(ctx)
	if err != nil {
		return Verification{}, explain("verify", err)
	}
	plans, err := s.verifyPlans(ctx)
	if err != nil {
		return Verification{}, explain("verify", err)
	}
	out := Verification{Checks: []Check{index, plans}}
	if !usable[keyIndex] {
		out.Checks = append(out.Checks, Check{Name: "rows", What: "the rows are as they must be", Skipped: true, Note: unfound})
		return out, nil
	}
	v := &verifier{opts: opts, keyed: usable[keysIndex], ordered: verifyOrdered, free: verifyFree}
	var queue Check
	err = txn.Snapshot(ctx, s.db, func(tx *gorm.DB) (err error) {
		v.tx = tx
		if err := s.prepareVerify(v); err != nil {
			return err
		}
		if err := v.pass(false); err != nil {
			return err
		}
		if queue, err = s.verifyQueue(v, usable[queueIndex]); err != nil {
			return err
		}
		return v.keys()
	})
	if err != nil {
		return Verification{}, explain("verify", err)
	}
	found := v.verification()
	found.Checks = append(append(out.Checks, queue), found.Checks...)
	return found, s.mend(ctx, &found, v)
}

// unfound says why rows are not looked at, one sort of the table for each chunk.
const unfound = keyIndex + ", by which rows are found, can't be used"

const (
	// verifyTime lets the statements take the time that they need.
	verifyTime = `
SELECT
	set_config('statement_timeout', '0', true),
	set_config('jit', 'off', true)`
	// verifyOrdered makes a pass go by the primary key, whatever the statistics.
	verifyOrdered = `
SELECT
	set_config('enable_seqscan', 'off', true),
	set_config('enable_bitmapscan', 'off', true),
	set_config('enable_sort', 'off', true)`
	verifyFree = `
SELECT
	set_config('enable_seqscan', 'on', true),
	set_config('enable_bitmapscan', 'on', true),
	set_config('enable_sort', 'on', true)`
)

// prepareVerify reads what the checks go by.
func (s *Postgres) prepareVerify(v *verifier) error {
	v.begin()
	if err := v.tell(verifyTime); err != nil {
		return err
	}
	var longest float64
	if err := v.tx.Raw(`SELECT coalesce(max(lease), 0) FROM ` + s.sql.schema + `.workers`).Scan(&longest).Error; err != nil {
		return err
	}
	slack := leaseSlack.Seconds()
	ahead := func(seconds string) string { return `now() + make_interval(secs => ` + seconds + `)` }
	v.words = strings.NewReplacer(
		"{schema}", s.sql.schema,
		"{epoch}", `TIMESTAMPTZ 'epoch'`,
		"{now}", `now()`, // when the transaction began, before its snapshot
		"{slack}", ahead(fmt.Sprint(slack)),
		"{lease}", ahead(fmt.Sprintf(`w.lease + %v`, slack)),
		"{unknown}", ahead(fmt.Sprint(max(longest, unknownLease.Seconds())+slack)),
		"{until}", `coalesce(to_char(d.available_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"'), 'for ever')`,
	)
	if err := v.tx.Raw(s.sql.facts).Scan(&v.facts).Error; err != nil {
		return err
	}
	return v.tx.Raw(`SELECT count(*) FROM `+s.sql.schema+`.tallies WHERE writer = ?`, verifyWriter).Scan(&v.corrections).Error
}

// verifyQueue counts the rows by the index. The order, which nobody needs, leaves the
// planner no other index.
func (s *Postgres) verifyQueue(v *verifier, usable bool) (Check, error) {
	c := Check{Name: "queue", What: "the index of the queue has all rows that are not processed, and no others"}
	if !usable {
		c.skip("the index can't be used")
		return c, nil
	}
	if err := v.tell(v.ordered); err != nil {
		return c, err
	}
	var n int64
	err := v.tx.Raw(`
		SELECT count(*)
		FROM (
			SELECT id
			FROM ` + s.sql.schema + `.datasets
			WHERE NOT is_processed
			ORDER BY available_at, id
			OFFSET 0
		) AS queue`).Scan(&n).Error
	if open := v.sum.open(); err == nil && n != open {
		c.offend(Offence{
			Reason: fmt.Sprintf("by the index %s, %d rows are not processed; by the table, %d", queueIndex, n, open),
			Cure:   fmt.Sprintf("REINDEX INDEX CONCURRENTLY %s.%s", s.sql.schema, queueIndex),
		})
	}
	return c, err
}

// verifyIndexes compares the indexes with those that the migrations make.
func (s *Postgres) verifyIndexes(ctx context.Context) (c Check, usable map[string]bool, err error) {
	type index struct {
		Name       string
		Usable     bool
		Unique     bool
		Definition string
	}
	var found []index
	err = s.inOneTrip(ctx, "look at the indexes", txn.Statement{
		SQL:  indexesSQL,
		Args: []any{pgx.NamedArgs{"rows": s.sql.schema + ".datasets", "keys": s.sql.schema + ".dataset_keys"}},
		Rows: func(rows pgx.Rows) (err error) {
			found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[index])
			return err
		},
	})
	byName := map[string]index{}
	for _, i := range found {
		byName[i.Name] = i
	}
	c, usable = indexCheck(), map[string]bool{}
	for _, want := range migratedIndexes {
		got, there := byName[want.name]
		full := s.sql.schema + "." + want.name
		create := strings.ReplaceAll(want.create, "{schema}", s.sql.schema)
		switch {
		case !there:
			c.offend(missingIndex(want, create))
		case !got.Usable:
			c.offend(Offence{Reason: fmt.Sprintf("the index %s of %s is not valid", want.name, want.table), Cure: "REINDEX INDEX CONCURRENTLY " + full})
		case got.Unique != want.unique || indexDefinition(got.Definition) != want.definition:
			c.offend(otherIndex(want, got.Definition, "DROP INDEX CONCURRENTLY "+full, create))
		default:
			usable[want.name] = true
		}
	}
	return c, usable, err
}

const indexesSQL = `
SELECT CAST(i.relname AS text), x.indisvalid AND x.indisready, x.indisunique, pg_get_indexdef(x.indexrelid)
FROM pg_index AS x
JOIN pg_class AS i ON i.oid = x.indexrelid
WHERE x.indrelid IN (CAST(CAST(@rows AS text) AS regclass), CAST(CAST(@keys AS text) AS regclass))`

// indexDefinition is what an index is of, without names and storage parameters.
func indexDefinition(create string) string {
	_, definition, _ := strings.Cut(create, " USING ")
	if before, options, has := strings.Cut(definition, " WITH ("); has {
		_, after, _ := strings.Cut(options, ")")
		definition = before + after
	}
	return definition
}

// verifyPlans has the server explain what workers run: all of it if this role may, or
// else the statements that only read.
func (s *Postgres) verifyPlans(ctx context.Context) (Check, error) {
	c := Check{Name: "plans", What: "the server finds rows by the indexes meant"}
	facts, err := s.planFacts(ctx)
	if err != nil {
		return c, err
	}
	if facts.rows < fewestRows {
		c.skip(fmt.Sprintf("the table has fewer than %d rows, by the server's estimate", fewestRows))
		return c, nil
	}
	groups := s.hotStatements(facts.middle)
	faults, err := s.planFaults(ctx, facts, groups)
	if isState(err, "42501") {
		c.Note = "of the statements that read only: to explain the others wants the rights of a worker"
		faults, err = s.planFaults(ctx, facts, []hotGroup{groups[peeking], groups[watching]})
	}
	for _, f := range faults {
		c.offend(Offence{Reason: fmt.Sprintf("the server plans %q by a %s", f.Statement, f.Found), Cure: f.Cure})
	}
	return c, err
}

// mend corrects the tallies, unless another verify has done so since the snapshot.
func (s *Postgres) mend(ctx context.Context, found *Verification, v *verifier) error {
	c := found.correction()
	if c.empty() || v.opts.NoMend {
		return nil
	}
	var mended []bool
	err := s.inOneTrip(ctx, "correct the tallies", settle,
		txn.Statement{SQL: `SELECT pg_advisory_xact_lock(CAST(@space AS integer), hashtext('verify'))`, Args: []any{pgx.NamedArgs{"space": s.light}}},
		txn.Statement{
			SQL: strings.ReplaceAll(correctSQL, "{schema}", s.sql.schema),
			Args: []any{pgx.NamedArgs{
				"done": c.done, "failed": c.failed, "added": c.added, "ids": c.ids,
				"writer": verifyWriter, "seen": v.corrections,
			}},
			Rows: into(&mended),
		})
	return found.settled(len(mended) > 0, err)
}

// correctSQL: the optimistic predicate stands last. Two that have found the same
// difference must not both add it.
const correctSQL = `
INSERT INTO {schema}.tallies (writer, at, done, failed, added, ids)
SELECT
	CAST(@writer AS text),
	TIMESTAMPTZ 'epoch',
	CAST(@done AS bigint),
	CAST(@failed AS bigint),
	CAST(@added AS bigint),
	CAST(@ids AS bigint)
WHERE (SELECT count(*) FROM {schema}.tallies WHERE writer = @writer ) = CAST(@seen AS bigint)
RETURNING true`

// mayNotWrite tells the errors of a role, a server or a file that may only be read.
func mayNotWrite(err error) bool {
	var file interface{ Code() int }
	return isState(err, "42501") || isState(err, "25006") || errors.As(err, &file) && file.Code()&0xff == 8
}

func isState(err error, state string) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && server.Code == state
}
