package checkout

import (
	"fmt"
	"strings"

	"gorm.io/gorm"
)

// VerifyOptions say how a table is verified.
type VerifyOptions struct {
	// NoMend leaves counters that differ from the counts as they are.
	NoMend bool
	// Progress, if set, is told how many rows have been looked at, of about how many.
	Progress func(rows, about int64)
}

// Verification is what Verify has looked at and found, all of it in one snapshot but
// for the indexes and plans.
type Verification struct {
	Rows    int64 // in the table
	Expired int64 // claims whose lease has run out; the next check-outs take their rows
	Checks  []Check
	// Counters are what the tallies and loads say, against the counts. Differences
	// are no offences: rows that were changed by plain SQL, or by workers of a
	// version before the tallies, explain them.
	Counters []Counter
	// Mended tells whether the tallies were corrected by the differences.
	Mended bool
	// Unmended is why they were not, if there are any; else empty.
	Unmended string
}

// Check is one thing that must hold.
type Check struct {
	Name string `json:"check"`
	What string `json:"what"` // that holds, if there is no offence
	// Offences is how many rows, or other things, are not as they must be.
	Offences int64 `json:"offences"`
	// Samples are the first of them, ten at most.
	Samples []Offence `json:"samples,omitempty"`
	// Skipped checks were not made; Note says why.
	Skipped bool `json:"skipped,omitempty"`
	// Note is what the check can't tell, and why; often empty.
	Note string `json:"note,omitempty"`
}

// Offence is something that is not as it must be.
type Offence struct {
	ID     *int64 `json:"id,omitempty"` // the row's; nil if it is not about a row that is there
	Reason string `json:"reason"`
	Cure   string `json:"cure,omitempty"` // SQL, or what else to do; empty: that depends
}

// Counter is a number that is kept without counting, and its true value.
type Counter struct {
	Name    string `json:"counter"` // done, failed, rows, or ids
	Kept    int64  `json:"kept"`
	Counted int64  `json:"counted"`
}

// Offences is how many there are in all.
func (v Verification) Offences() (n int64) {
	for _, c := range v.Checks {
		n += c.Offences
	}
	return n
}

// Differs tells whether some counter is not what was counted. That more ids are known
// of than there are is no difference: loads use some up for duplicates.
func (v Verification) Differs() bool { return !v.correction().empty() }

// correction is what the tallies lack.
func (v Verification) correction() (c correction) {
	by := map[string]int64{}
	for _, counter := range v.Counters {
		by[counter.Name] = counter.Counted - counter.Kept
	}
	c = correction{done: by["done"], failed: by["failed"], added: by["rows"], ids: by["ids"]}
	if c.added == 0 {
		c.ids = max(c.ids, 0)
	}
	return c
}

// correction is a row of tallies that makes the sums true. As it is a difference, found
// in one snapshot, it is right whatever workers have added to both sides since.
//
// Where rows have come or gone, the ids are set to just those that there are: else the
// ids of rows that have been deleted would pass for those of rows that come by plain
// SQL later, and an estimate for an exact count.
type correction struct{ done, failed, added, ids int64 }

func (c correction) empty() bool { return c == correction{} }

// verifyWriter is the writer of corrections.
const verifyWriter = "verify"

const (
	// mostSamples is how many offences of a check are named.
	mostSamples = 10
	// verifyChunk is how many rows one statement looks at: some tenths of a second.
	verifyChunk = 50_000
)

// offend adds an offence that is not a row's.
func (c *Check) offend(o Offence) {
	c.Offences++
	if len(c.Samples) < mostSamples {
		c.Samples = append(c.Samples, o)
	}
}

func (c *Check) skip(why string) { c.Skipped, c.Note = true, why }

// verifier makes the checks of rows and counters in a transaction that is a snapshot.
type verifier struct {
	tx    *gorm.DB
	words *strings.Replacer // puts names, instants and limits into the statements
	opts  VerifyOptions
	facts overviewFacts
	keyed bool // keys can be looked up
	// ordered and free are statements for the planner: before rows are read in the order
	// of ids, and before tables are joined. Empty: there is nothing to say.
	ordered, free string

	sum         portion
	checks      []Check // of rowChecks, one by one
	keyEntries  Check
	corrections int64 // rows of tallies that earlier ones have added
}

// begin makes the checks ready.
func (v *verifier) begin() {
	v.checks = make([]Check, len(rowChecks))
	for i, c := range rowChecks {
		v.checks[i] = Check{Name: c.name, What: c.what}
		if c.byKey && !v.keyed {
			v.checks[i].skip(unkeyed)
		}
	}
}

// pass looks at all rows in the order of ids, portion by portion, and makes the checks
// that look keys up, or the others.
func (v *verifier) pass(byKey bool) error {
	v.sum = portion{}
	if v.facts.First == nil {
		return nil
	}
	if err := v.tell(v.ordered); err != nil {
		return err
	}
	statement := v.words.Replace(chunkSQL(byKey))
	from := *v.facts.First
	for {
		p, err := v.look(statement, from)
		if err != nil {
			return err
		}
		if err := v.take(from, p); err != nil {
			return err
		}
		if v.opts.Progress != nil {
			v.opts.Progress(v.sum.rows, max(v.facts.Total, v.sum.rows))
		}
		if p.rows < verifyChunk || p.last == *v.facts.Last {
			return nil
		}
		from = p.last + 1
	}
}

// tell has the planner told something.
func (v *verifier) tell(statement string) error {
	if statement == "" {
		return nil
	}
	return v.tx.Exec(statement).Error
}

// portion is what one statement has counted.
type portion struct {
	rows, last                     int64
	done, failed, expired, withKey int64
	offences                       []int64 // of rowChecks
}

// open is how many rows are not processed.
func (p portion) open() int64 { return p.rows - p.done - p.failed }

func (v *verifier) look(statement string, from int64) (c portion, err error) {
	c.offences = make([]int64, len(rowChecks))
	into := []any{&c.rows, &c.last, &c.done, &c.failed, &c.expired, &c.withKey}
	for i := range c.offences {
		into = append(into, &c.offences[i])
	}
	return c, v.tx.Raw(statement, from).Row().Scan(into...)
}

// chunkSQL judges each row within the subquery, where only what is asked for is read of
// it, and counts outside.
func chunkSQL(byKey bool) string {
	var judged, counted strings.Builder
	for i, c := range rowChecks {
		condition := c.offends
		if c.byKey != byKey {
			condition = "false"
		}
		fmt.Fprintf(&judged, ",\n\t\t(%s) AS c%d", condition, i)
		fmt.Fprintf(&counted, ",\n\tcount(*) FILTER (WHERE c%d)", i)
	}
	return fmt.Sprintf(verifyChunkSQL, counted.String(), judged.String(), verifyChunk)
}

const verifyChunkSQL = `
SELECT
	count(*),
	coalesce(max(id), 0),
	count(*) FILTER (WHERE is_processed AND NOT has_error),
	count(*) FILTER (WHERE is_processed AND has_error),
	count(*) FILTER (WHERE is_expired),
	count(*) FILTER (WHERE has_key)%s
FROM (
	SELECT
		d.id,
		d.is_processed,
		(d.error IS NOT NULL) AS has_error,
		(d.key IS NOT NULL) AS has_key,
		(NOT d.is_processed AND d.checked_out_by IS NOT NULL AND d.available_at <= {now}) AS is_expired%s
	FROM {schema}.datasets AS d
	WHERE d.id >= ?
	ORDER BY d.id
	LIMIT %d
) AS judged`

// take adds what a portion has brought, and names rows of checks that have not enough.
func (v *verifier) take(from int64, p portion) error {
	v.sum.rows += p.rows
	v.sum.done += p.done
	v.sum.failed += p.failed
	v.sum.expired += p.expired
	v.sum.withKey += p.withKey
	for i, n := range p.offences {
		check := &v.checks[i]
		if room := mostSamples - len(check.Samples); n > 0 && room > 0 {
			if err := v.sample(check, rowChecks[i], from, p.last, room); err != nil {
				return err
			}
		}
		check.Offences += n
	}
	return nil
}

func (v *verifier) sample(check *Check, c rowCheck, from, to int64, n int) error {
	var found []suspect
	err := v.tx.Raw(v.words.Replace(fmt.Sprintf(suspectsSQL, c.offends)), from, to, n).Scan(&found).Error
	for _, row := range found {
		check.Samples = append(check.Samples, Offence{ID: &row.ID, Reason: c.reason(row)})
	}
	return err
}

// unkeyed says why keys are not looked up, one scan of the table each.
const unkeyed = "dataset_keys has no index that can be used"

// keys compares dataset_keys with the rows. Where an entry's row has the entry's key,
// both are right. If there are as many of these as there are rows with keys, or entries,
// none of them is at fault; else those that are have to be looked for.
//
// To join both by id takes a third of the time that looking each row's key up takes,
// since neighbours by id stand together and neighbours by key don't (3 million rows).
func (v *verifier) keys() error {
	v.keyEntries = Check{Name: "key-entry", What: "every entry of dataset_keys is that of a row with this key"}
	if !v.keyed {
		v.keyEntries.skip(unkeyed)
		return nil
	}
	if err := v.tell(v.free); err != nil {
		return err
	}
	var entries, right int64
	if err := v.tx.Raw(v.words.Replace(rightEntriesSQL)).Row().Scan(&entries, &right); err != nil {
		return err
	}
	if entries != right {
		if err := v.strayEntries(entries - right); err != nil {
			return err
		}
	}
	if v.sum.withKey == right {
		return nil
	}
	return v.pass(true)
}

const rightEntriesSQL = `
SELECT count(*), count(*) FILTER (WHERE d.key = k.key)
FROM {schema}.dataset_keys AS k
LEFT JOIN {schema}.datasets AS d ON d.id = k.id`

// strayEntries names some of the n entries that belong to no row.
func (v *verifier) strayEntries(n int64) error {
	var found []struct {
		Key string
		ID  int64
		Has *int64
	}
	err := v.tx.Raw(v.words.Replace(strayEntriesSQL), mostSamples).Scan(&found).Error
	for _, e := range found {
		o := Offence{ID: e.Has, Reason: fmt.Sprintf("has another key than %s, which dataset_keys says it has", shownKey(e.Key))}
		if e.Has == nil {
			o.Reason = fmt.Sprintf("dataset_keys has the key %s of row %d, which is not there: a load would take it for a duplicate", shownKey(e.Key), e.ID)
			o.Cure = v.words.Replace(fmt.Sprintf(`DELETE FROM {schema}.dataset_keys WHERE id = %d`, e.ID))
		}
		v.keyEntries.Samples = append(v.keyEntries.Samples, o)
	}
	v.keyEntries.Offences = n
	return err
}

const strayEntriesSQL = `
SELECT k.key, k.id, d.id AS has
FROM {schema}.dataset_keys AS k
LEFT JOIN {schema}.datasets AS d ON d.id = k.id
WHERE d.id IS NULL
	OR d.key IS NULL
	OR d.key <> k.key
LIMIT ?`

// verification puts everything together.
func (v *verifier) verification() Verification {
	out := Verification{Rows: v.sum.rows, Expired: v.sum.expired}
	out.Checks = append(v.checks, v.keyEntries)
	out.Counters = []Counter{
		{"done", v.facts.Done, v.sum.done},
		{"failed", v.facts.Failed, v.sum.failed},
		{"rows", v.facts.Total, v.sum.rows},
		{"ids", v.facts.IDs, v.facts.span()},
	}
	return out
}

// settled says what became of a correction.
func (v *Verification) settled(mended bool, err error) error {
	switch {
	case err != nil && mayNotWrite(err):
		v.Unmended = "this role may not: it wants INSERT on tallies"
		return nil
	case err != nil:
		return err
	case !mended:
		v.Unmended = "another verify has corrected them meanwhile"
	}
	v.Mended = mended
	return nil
}
