package checkout

import "fmt"

// Explain is the store's last step with an error, for tests that can't wait for
// all the tries before it.
var Explain = explain

// SQLiteStatements are the hot statements on SQLite, by name, as they are sent.
func SQLiteStatements() map[string]string {
	return map[string]string{
		"peek fresh":   sqlitePeekFreshSQL,
		"fresh bounds": sqliteFreshBoundsSQL,
		"peek due":     sqlitePeekDueSQL,
		"claim":        sqliteClaimSQL,
		"check in":     sqliteCheckInSQL,
		"renew":        sqliteRenewSQL,
		"agenda":       sqliteAgendaSQL,
		"put back":     fmt.Sprintf(sqlitePutBackSQL, Selection{All: true}.condition()),
	}
}
