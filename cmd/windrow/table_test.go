package main_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/zap"
	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/database"
)

// table is the oracle: the rows as they stand, read past the program.
type table struct {
	t    *testing.T
	db   *gorm.DB
	name string
}

// row is what the tests look at.
type row struct {
	ID           int64
	Key          *string
	IsProcessed  bool
	Checkouts    int
	CheckedOutBy *string
	Attempts     int
	Losses       int
	Round        int
	Result       *string
	Error        *string
	LastError    *string
	Version      *string
}

// table opens the place's database.
func (p *place) table() *table {
	p.t.Helper()
	if p.database == "" {
		return p.file("windrow.db")
	}
	db, err := database.OpenPostgres(p.database, zap.NewNop())
	return p.opened(db, err, "windrow.datasets")
}

// file opens an SQLite file in the place.
func (p *place) file(name string) *table {
	p.t.Helper()
	db, err := database.OpenSQLite(p.path(name), false, zap.NewNop())
	return p.opened(db, err, "datasets")
}

func (p *place) opened(db *gorm.DB, err error, name string) *table {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = database.Close(db) }) // only read from
	return &table{t: p.t, db: db, name: name}
}

// onPostgres tells the engine.
func (b *table) onPostgres() bool { return b.name != "datasets" }

// count counts the rows for which the condition holds.
func (b *table) count(condition string) int {
	b.t.Helper()
	n, err := b.tryCount(condition)
	if err != nil {
		b.t.Fatalf("count %s: %v", condition, err)
	}
	return n
}

// tryCount is count where the database may be out of reach.
func (b *table) tryCount(condition string) (int, error) {
	var n int
	err := b.db.Raw("SELECT count(*) FROM " + b.name + " WHERE " + condition).Scan(&n).Error
	return n, err
}

// writable tells whether nobody keeps others from writing.
func (b *table) writable() bool {
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Second)
	defer cancel()
	tx := b.db.WithContext(ctx).Begin()
	if tx.Error != nil {
		return false
	}
	return tx.Rollback().Error == nil
}

// done counts the rows with a result.
func (b *table) done() int { return b.count("is_processed AND error IS NULL") }

// held counts the rows that a worker has.
func (b *table) held() int { return b.count("NOT is_processed AND checked_out_by IS NOT NULL") }

// rows returns the rows for which the condition holds, in the order of their ids.
func (b *table) rows(condition string) []row {
	b.t.Helper()
	var rows []row
	err := b.db.Raw(`SELECT id, key, is_processed, checkouts, checked_out_by, attempts, losses, round,
		CAST(result AS text) AS result, error, last_error, version
		FROM ` + b.name + ` WHERE ` + condition + ` ORDER BY id`).Scan(&rows).Error
	if err != nil {
		b.t.Fatalf("rows %s: %v", condition, err)
	}
	return rows
}

// wants checks how many rows there are for each condition.
func (b *table) wants(want map[string]int) {
	b.t.Helper()
	for condition, n := range want {
		if got := b.count(condition); got != n {
			b.t.Errorf("%d rows are %s, want %d", got, condition, n)
		}
	}
}

// watch writes down every check-in that ends a row's round, from now on.
func (b *table) watch() {
	b.t.Helper()
	statements := []string{
		`CREATE TABLE accepted (id integer, holder text)`,
		`CREATE TRIGGER note_accepted AFTER UPDATE ON datasets WHEN NEW.is_processed
			BEGIN INSERT INTO accepted VALUES (NEW.id, NEW.checked_out_by); END`,
	}
	if b.onPostgres() {
		statements = []string{
			`CREATE TABLE public.accepted (id bigint, holder text)`,
			`CREATE FUNCTION public.note_accepted() RETURNS trigger LANGUAGE plpgsql AS
				$$ BEGIN INSERT INTO public.accepted VALUES (NEW.id, NEW.checked_out_by); RETURN NULL; END $$`,
			`CREATE TRIGGER note_accepted AFTER UPDATE ON windrow.datasets
				FOR EACH ROW WHEN (NEW.is_processed) EXECUTE FUNCTION public.note_accepted()`,
		}
	}
	for _, s := range statements {
		if err := b.db.Exec(s).Error; err != nil {
			b.t.Fatalf("%s: %v", s, err)
		}
	}
}

// wantsAcceptedOnce checks that of each of n rows exactly one check-in was
// accepted since watch.
func (b *table) wantsAcceptedOnce(n int) {
	b.t.Helper()
	var got struct{ Total, Different int }
	if err := b.db.Raw(`SELECT count(*) AS total, count(DISTINCT id) AS different FROM accepted`).Scan(&got).Error; err != nil {
		b.t.Fatal(err)
	}
	if got.Total != n || got.Different != n {
		b.t.Errorf("%d check-ins of %d rows were accepted, want one of each of %d", got.Total, got.Different, n)
	}
}
