package checkout

import (
	"context"
	"fmt"
	"time"
)

// Explain is the store's last step with an error, for tests that can't wait for
// all the tries before it.
var Explain = explain

// SQLiteStatements are the hot statements on SQLite, by name, as they are sent.
func SQLiteStatements() map[string]string {
	return map[string]string{
		"peek fresh":    sqlitePeekFreshSQL,
		"fresh bounds":  sqliteFreshBoundsSQL,
		"peek due":      sqlitePeekDueSQL,
		"claim":         sqliteClaimSQL,
		"check in":      sqliteCheckInSQL,
		"check in done": sqliteCheckInDoneSQL,
		"renew":         sqliteRenewSQL,
		"agenda":        sqliteAgendaSQL,
		"cancel":        sqliteCancelSQL,
		"put back":      fmt.Sprintf(sqlitePutBackSQL, Selection{All: true}.condition("@began ")),
		"picked":        fmt.Sprintf(sqlitePickedSQL, Selection{All: true}.condition("@began ")),
		"keep":          fmt.Sprintf(sqliteKeepAllSQL, Selection{All: true}.condition("@began ")),
		"restore":       sqliteRestoreSQL,
		"forget":        sqliteForgetHistorySQL,
		"diff":          sqliteDiffSQL,
	}
}

// PeekFresh, FreshBounds and PeekDue are the looks by themselves; a store makes
// them when it needs to.

func (s *Postgres) PeekFresh(ctx context.Context, after int64, n int) ([]int64, error) {
	return s.peekFresh(ctx, after, afterAll, n)
}

func (s *Postgres) FreshBounds(ctx context.Context) (low, high int64, ok bool, err error) {
	return s.freshBounds(ctx)
}

func (s *Postgres) PeekDue(ctx context.Context, from time.Time, n int) ([]int64, error) {
	rows, err := s.peekDue(ctx, from, n)
	return rows.keys, err
}

// SetOpenBudget bounds the time in which an overview counts what is held or waits.
func (s *Postgres) SetOpenBudget(d time.Duration) { s.openBudget = d }

// Setting tells a setting of the session that the next statement gets.
func (s *Postgres) Setting(ctx context.Context, name string) (value string, err error) {
	err = s.db.WithContext(ctx).Raw(`SELECT current_setting(?)`, name).Scan(&value).Error
	return value, err
}
