package checkout

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/txn"
)

// Verify looks at every row, key and counter in one snapshot, and at the indexes and
// the file itself, and tells what is not as it must be. It takes as long as two passes
// over the file do, in bounded memory, and keeps nobody from working. Nothing but
// tallies is changed, and those only where counters differ and opts don't forbid it.
func (s *SQLite) Verify(ctx context.Context, opts VerifyOptions) (Verification, error) {
	v := &verifier{opts: opts, keyed: true}
	var before []Check
	err := txn.Deferred(ctx, s.db, func(tx *gorm.DB) error {
		v.tx = tx
		file, err := sqliteIntegrity(tx)
		if err != nil {
			return err
		}
		index, err := sqliteIndexes(tx)
		if err != nil {
			return err
		}
		if err := v.prepareSQLite(); err != nil {
			return err
		}
		if err := v.pass(false); err != nil {
			return err
		}
		plans, err := sqlitePlans(tx, v.sum.rows)
		if err != nil {
			return err
		}
		before = []Check{file, index, plans}
		return v.keys()
	})
	if err != nil {
		return Verification{}, explain("verify", err)
	}
	found := v.verification()
	found.Checks = append(before, found.Checks...)
	return found, s.mend(ctx, &found, v)
}

// prepareSQLite reads what the checks go by.
func (v *verifier) prepareSQLite() error {
	v.begin()
	var now int64
	if err := v.tx.Raw(`SELECT ` + nowSQL).Scan(&now).Error; err != nil {
		return err
	}
	var longest float64
	if err := v.tx.Raw(`SELECT coalesce(max(lease), 0) FROM workers`).Scan(&longest).Error; err != nil {
		return err
	}
	slack := now + leaseSlack.Microseconds()
	v.words = strings.NewReplacer(
		"{schema}.", "",
		"{epoch}", "0",
		"{now}", strconv.FormatInt(now, 10),
		"{slack}", strconv.FormatInt(slack, 10),
		"{lease}", fmt.Sprintf(`%d + w.lease * 1000000`, slack),
		"{unknown}", strconv.FormatInt(slack+int64(max(longest, unknownLease.Seconds())*1e6), 10),
		"{until}", `coalesce(datetime(d.available_at / 1000000, 'unixepoch') || 'Z', 'for ever')`,
	)
	if err := v.tx.Raw(sqliteFactsSQL).Scan(&v.facts).Error; err != nil {
		return err
	}
	return v.tx.Raw(sqliteCorrectionsSQL, verifyWriter).Scan(&v.corrections).Error
}

const sqliteCorrectionsSQL = `
SELECT count(*)
FROM tallies
WHERE writer = ?`

// sqliteIntegrity has SQLite check the whole file, the indexes against the tables
// included.
func sqliteIntegrity(tx *gorm.DB) (Check, error) {
	c := Check{Name: "file", What: "the file is sound, and its indexes have just what their tables have"}
	var found []string
	err := tx.Raw(fmt.Sprintf(`PRAGMA integrity_check(%d)`, mostSamples)).Scan(&found).Error
	if len(found) == 1 && found[0] == "ok" {
		return c, err
	}
	for _, text := range found {
		o := Offence{Reason: text}
		if strings.Contains(text, "index") {
			o.Cure = "REINDEX"
		}
		c.offend(o)
	}
	if len(found) == mostSamples {
		c.Note = fmt.Sprintf("only the first %d are told of", mostSamples)
	}
	return c, err
}

// sqliteIndexes compares the indexes that have names of their own with those that the
// migrations make. The others are parts of their tables.
func sqliteIndexes(tx *gorm.DB) (Check, error) {
	c := indexCheck()
	var found []struct{ Name, SQL string }
	err := tx.Raw(`SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL`).Scan(&found).Error
	byName := map[string]string{}
	for _, i := range found {
		byName[i.Name] = i.SQL
	}
	for _, want := range migratedIndexes {
		if want.unique {
			continue
		}
		create := strings.NewReplacer("{schema}.", "", "CONCURRENTLY ", "").Replace(want.create)
		got, there := byName[want.name]
		switch {
		case !there:
			c.offend(missingIndex(want, create))
		case squeezed(got) != squeezed(create):
			c.offend(otherIndex(want, got, "DROP INDEX "+want.name, create))
		}
	}
	return c, err
}

// squeezed is a statement without what is of no meaning in it.
func squeezed(statement string) string {
	s := strings.NewReplacer(`"`, "", "IF NOT EXISTS", "", "if not exists", "").Replace(statement)
	return strings.ToLower(strings.Join(strings.Fields(s), ""))
}

// sqlitePlans has the looks for rows explained. A small table is rightly read as a
// whole.
func sqlitePlans(tx *gorm.DB, rows int64) (Check, error) {
	c := Check{Name: "plans", What: "SQLite finds rows by the index meant"}
	if rows < fewestRows {
		c.skip(fmt.Sprintf("the table has fewer than %d rows", fewestRows))
		return c, nil
	}
	for _, look := range []struct {
		name, sql string
		args      []any
	}{
		{"peek fresh", sqlitePeekFreshSQL, []any{0, 0, 1}},
		{"peek due", sqlitePeekDueSQL, []any{0, 1}},
	} {
		var steps []struct{ Detail string }
		if err := tx.Raw(`EXPLAIN QUERY PLAN `+look.sql, look.args...).Scan(&steps).Error; err != nil {
			return c, err
		}
		for _, step := range steps {
			if strings.Contains(step.Detail, " datasets") && !strings.Contains(step.Detail, "INDEX "+queueIndex) {
				c.offend(Offence{Reason: fmt.Sprintf("SQLite plans %q by %s", look.name, step.Detail), Cure: "ANALYZE"})
			}
		}
	}
	return c, nil
}

// mend corrects the tallies, unless another verify has done so since the snapshot.
func (s *SQLite) mend(ctx context.Context, found *Verification, v *verifier) error {
	c := found.correction()
	if c.empty() || v.opts.NoMend {
		return nil
	}
	mended := false
	err := s.write(ctx, "correct the tallies", func(tx *gorm.DB) error {
		var seen int64
		if err := tx.Raw(sqliteCorrectionsSQL, verifyWriter).Scan(&seen).Error; err != nil {
			return err
		}
		mended = seen == v.corrections
		if !mended {
			return nil
		}
		return tx.Exec(`INSERT INTO tallies (writer, at, done, failed, added, ids) VALUES (?, 0, ?, ?, ?, ?)`,
			verifyWriter, c.done, c.failed, c.added, c.ids).Error
	})
	return found.settled(mended && err == nil, err)
}
