package schedule

// SQLiteStatements are those that a scheduler and the listings read runs by, and those
// that write them.
func SQLiteStatements() map[string]string {
	s := &SQLite{}
	s.render(StoreOptions{})
	statements := map[string]string{
		"due": sqliteDueSQL, "next due": sqliteNextDueSQL, "held": sqliteHeldSQL, "blocked": sqliteBlockedSQL,
		"abandon": sqliteAbandonSQL + ` AND lock = @lock`, "reap": sqliteAbandonSQL + ` AND id = @id`,
		"startable": sqliteStartableSQL, "begin": sqliteBeginSQL, "skip": sqliteSkipSQL,
		"renew": sqliteRenewSQL, "kept": sqliteKeptSQL, "finish": sqliteFinishSQL,
		"waiting": sqliteWaitingSQL, "waiting one": sqliteWaitingOneSQL, "running": sqliteRunningSQL,
		"list last": sqliteListLastSQL, "get last": sqliteGetLastSQL, "history": sqliteHistorySQL,
		"run": sqliteRunSQL, "regular waits": sqliteRegularWaitsSQL, "cancel": sqliteCancelSQL,
		"forget": sqliteForgetSQL[0], "forget cancelled": sqliteForgetSQL[1],
	}
	for name, statement := range statements {
		statements[name] = s.sql.Replace(statement)
	}
	return statements
}
