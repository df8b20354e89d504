package checkout

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/windrow-go/windrow/internal/jsonb"
)

// rowCheck is something that must hold for every row.
type rowCheck struct {
	name    string
	what    string
	offends string // the condition, over the row d, that a row at fault meets
	reason  func(suspect) string
	byKey   bool // it looks keys up
}

const (
	// leaseSlack is how much further ahead than its worker's lease a claim may be.
	leaseSlack = time.Minute
	// unknownLease is how far ahead a claim of a worker that nobody knows may be, if
	// no worker that is known has a longer lease.
	unknownLease = 24 * time.Hour
)

// heldSQL is a claim, live or expired.
const heldSQL = `NOT d.is_processed AND d.checked_out_by IS NOT NULL`

// rowChecks are made in one pass. What a condition looks up in another table it does
// for few rows, or by an index.
var rowChecks = []rowCheck{
	{
		name:    "outcome",
		what:    "every processed row has a result or an error",
		offends: `d.is_processed AND d.result IS NULL AND d.error IS NULL`,
		reason:  func(suspect) string { return "is processed, but has neither a result nor an error" },
	},
	{
		name:    "one-outcome",
		what:    "no processed row has both a result and an error",
		offends: `d.is_processed AND d.result IS NOT NULL AND d.error IS NOT NULL`,
		reason:  func(suspect) string { return "is processed, and has both a result and an error" },
	},
	{
		name:    "processed-at",
		what:    "every processed row says when it was processed",
		offends: `d.is_processed AND d.processed_at IS NULL`,
		reason:  func(suspect) string { return "is processed, but does not say when" },
	},
	{
		name:    "former-outcome",
		what:    "a row that is not processed has a result or an error only from a former round",
		offends: `NOT d.is_processed AND (d.result IS NOT NULL OR d.error IS NOT NULL) AND (d.processed_at IS NULL OR d.round = 0)`,
		reason: func(s suspect) string {
			return fmt.Sprintf("is not processed and in round %d, but has a result or an error that no former round has left", s.Round)
		},
	},
	{
		name: "tries",
		what: "tokens, attempts, losses, refunds and rounds are consistent",
		offends: `d.checkouts < 0 OR d.attempts < 0 OR d.losses < 0 OR d.refunds < 0 OR d.round < 0
			OR d.attempts > d.checkouts OR d.losses > d.attempts`,
		reason: func(s suspect) string {
			return fmt.Sprintf("can't have %d check-outs, %d attempts, %d losses and %d refunds in round %d",
				s.Checkouts, s.Attempts, s.Losses, s.Refunds, s.Round)
		},
	},
	{
		name:    "last-checkout",
		what:    "a row was last checked out at some time if, and only if, it was checked out",
		offends: `(d.checkouts > 0) <> (d.last_checkout > {epoch})`,
		reason: func(s suspect) string {
			if s.Checkouts > 0 {
				return fmt.Sprintf("was checked out %d times, but never by last_checkout", s.Checkouts)
			}
			return "was last checked out at some time, but has no check-outs"
		},
	},
	{
		name:    "claim",
		what:    "every claim has a token and an attempt",
		offends: heldSQL + ` AND (d.checkouts <= 0 OR d.attempts <= 0)`,
		reason: func(s suspect) string {
			return fmt.Sprintf("is held by %s with token %d in attempt %d, which no check-out gives", shownKey(s.Holder), s.Checkouts, s.Attempts)
		},
	},
	{
		name: "lease",
		what: "no lease is further ahead than its worker's leases are long",
		offends: `CASE WHEN ` + heldSQL + ` AND d.available_at > {slack}
			THEN coalesce((SELECT d.available_at > {lease} FROM {schema}.workers AS w WHERE w.holder = d.checked_out_by), false)
			ELSE false END`,
		reason: func(s suspect) string {
			return fmt.Sprintf("is held by %s until %s, though its leases are %s long", shownKey(s.Holder), s.Until,
				time.Duration(s.Lease*float64(time.Second)))
		},
	},
	{
		name: "orphan",
		what: "no claim of a worker that nobody knows is longer than a day, or than all leases that are known",
		offends: `CASE WHEN ` + heldSQL + ` AND d.available_at > {unknown}
			THEN NOT EXISTS (SELECT 1 FROM {schema}.workers AS w WHERE w.holder = d.checked_out_by)
			ELSE false END`,
		reason: func(s suspect) string {
			return fmt.Sprintf("is held until %s by %s, which is not among the workers", s.Until, shownKey(s.Holder))
		},
	},
	{
		name:    "redo",
		what:    "only claims are marked to be worked again",
		offends: `d.redo_run IS NOT NULL AND (d.is_processed OR d.checked_out_by IS NULL)`,
		reason: func(s suspect) string {
			return fmt.Sprintf("is marked to be worked again by run %s, but nobody holds it", shownRun(s.RedoRun))
		},
	},
	{
		name: "run",
		what: "every run that a row names is there",
		offends: `d.run_id IS NOT NULL AND d.run_id NOT IN (SELECT r.id FROM {schema}.runs AS r)
			OR d.redo_run IS NOT NULL AND d.redo_run NOT IN (SELECT r.id FROM {schema}.runs AS r)`,
		reason: func(s suspect) string {
			return fmt.Sprintf("was put back by run %s and is to be by run %s, of which one is not in runs", shownRun(s.RunID), shownRun(s.RedoRun))
		},
	},
	{
		name:    "key",
		what:    "every key of a row is its own, and in dataset_keys",
		offends: `d.key IS NOT NULL AND coalesce((SELECT k.id FROM {schema}.dataset_keys AS k WHERE k.key = d.key) <> d.id, true)`,
		byKey:   true,
		reason: func(s suspect) string {
			if s.KeyID == nil {
				return fmt.Sprintf("has the key %s, which is not in dataset_keys", shownKey(*s.Key))
			}
			return fmt.Sprintf("has the key %s, which is row %d's", shownKey(*s.Key), *s.KeyID)
		},
	},
}

// suspect is what the reasons tell of a row.
type suspect struct {
	ID        int64
	Checkouts int64
	Attempts  int64
	Losses    int64
	Refunds   int64
	Round     int64
	Holder    string
	Until     string  // available_at
	Lease     float64 // its worker's, in seconds
	RunID     *int64  `gorm:"column:run_id"`
	RedoRun   *int64
	Key       *string
	KeyID     *int64 `gorm:"column:key_id"` // whose the key is
}

const suspectsSQL = `
SELECT
	d.id,
	d.checkouts,
	d.attempts,
	d.losses,
	d.refunds,
	d.round,
	coalesce(d.checked_out_by, '') AS holder,
	{until} AS until,
	coalesce((SELECT w.lease FROM {schema}.workers AS w WHERE w.holder = d.checked_out_by), 0) AS lease,
	d.run_id,
	d.redo_run,
	d.key,
	(SELECT k.id FROM {schema}.dataset_keys AS k WHERE k.key = d.key) AS key_id
FROM {schema}.datasets AS d
WHERE d.id >= ?
	AND d.id <= ?
	AND (%s)
ORDER BY d.id
LIMIT ?`

// longestShown bounds what a reason has of a key or a holder, in bytes.
const longestShown = 100

func shownKey(key string) string { return strconv.Quote(jsonb.SafeText(key, longestShown)) }

func shownRun(id *int64) string {
	if id == nil {
		return "-"
	}
	return strconv.FormatInt(*id, 10)
}

// migratedIndex is an index as the migrations make it.
type migratedIndex struct {
	table, name string
	unique      bool
	definition  string // as PostgreSQL words it, from USING on
	create      string // the statement that makes it; {schema} is the schema's name
}

// migratedIndexes are those of the tables that rows and keys stand in. The first and
// the last are those that rows and keys are found by.
var migratedIndexes = []migratedIndex{
	{"datasets", keyIndex, true, `btree (id)`,
		`ALTER TABLE {schema}.datasets ADD CONSTRAINT datasets_pkey PRIMARY KEY (id)`},
	{"datasets", queueIndex, false, `btree (available_at, id) WHERE (NOT is_processed)`,
		`CREATE INDEX CONCURRENTLY unprocessed_datasets_idx ON {schema}.datasets (available_at, id) WHERE NOT is_processed`},
	{"datasets", failedIndex, false, `btree (id) WHERE (is_processed AND (error IS NOT NULL))`,
		`CREATE INDEX CONCURRENTLY failed_datasets_idx ON {schema}.datasets (id) WHERE is_processed AND error IS NOT NULL`},
	{"dataset_keys", keysIndex, true, `btree (key)`,
		`ALTER TABLE {schema}.dataset_keys ADD CONSTRAINT dataset_keys_pkey PRIMARY KEY (key)`},
}

const (
	failedIndex = "failed_datasets_idx"
	keysIndex   = "dataset_keys_pkey"
)

// indexCheck begins the check of the indexes.
func indexCheck() Check {
	return Check{Name: "index", What: "the indexes are there, valid, and as they were migrated"}
}

// missingIndex and otherIndex are what may be wrong with one.
func missingIndex(i migratedIndex, create string) Offence {
	return Offence{Reason: fmt.Sprintf("the index %s of %s is missing", i.name, i.table), Cure: create}
}

func otherIndex(i migratedIndex, found, drop, create string) Offence {
	return Offence{
		Reason: fmt.Sprintf("the index %s of %s is another than was migrated: %s", i.name, i.table, found),
		Cure:   strings.TrimSpace(drop + "; " + create),
	}
}
