package checkout

// SQLiteFailureStatements are what SQLite.Failures asks, by name.
func SQLiteFailureStatements() map[string]string {
	return map[string]string{"failed": sqliteFailedErrorsSQL, "waiting": sqliteWaitingErrorsSQL}
}
