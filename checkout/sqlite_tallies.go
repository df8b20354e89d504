package checkout

import "gorm.io/gorm"

// sqliteTally adds t in the transaction that makes it true.
func sqliteTally(tx *gorm.DB, t tally) error {
	if t.empty() {
		return nil
	}
	return tx.Exec(`INSERT INTO tallies (writer, at, done, failed) VALUES (?, `+nowSQL+`, ?, ?)`,
		t.writer, t.done, t.failed).Error
}

// sqliteTallyAtRest is sqliteTally for what is no worker's work, and so not in the rate
// of the last minute.
func sqliteTallyAtRest(tx *gorm.DB, t tally) error {
	if t.empty() {
		return nil
	}
	return tx.Exec(`INSERT INTO tallies (writer, at, done, failed) VALUES (?, 0, ?, ?)`, t.writer, t.done, t.failed).Error
}
