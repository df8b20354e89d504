package txn

import (
	"errors"

	"github.com/jackc/pgx/v5"
)

// Reason names why a transaction has to be done again. The zero value means
// that trying again would not help.
type Reason string

// The reasons to try again.
const (
	ReasonNone          Reason = ""
	ReasonSerialization Reason = "serialization" // 40001
	ReasonDeadlock      Reason = "deadlock"      // 40P01
	ReasonLockTimeout   Reason = "lock_timeout"  // 55P03
	ReasonRolledBack    Reason = "rolled_back"   // COMMIT was answered by ROLLBACK
	ReasonBusy          Reason = "busy"          // SQLite: another writer
)

// sqliteBusy is SQLite's primary result code for a lost lock race; its extended
// forms, such as BUSY_SNAPSHOT, differ only above the low byte.
const sqliteBusy = 5

// ReasonOf classifies err. Only errors after which the transaction is certain
// not to have taken effect are worth a retry here: a connection lost at COMMIT
// is not one of them.
func ReasonOf(err error) Reason {
	var state interface{ SQLState() string }
	if errors.As(err, &state) {
		switch state.SQLState() {
		case "40001":
			return ReasonSerialization
		case "40P01":
			return ReasonDeadlock
		case "55P03":
			return ReasonLockTimeout
		}
		return ReasonNone
	}
	if errors.Is(err, pgx.ErrTxCommitRollback) {
		return ReasonRolledBack
	}
	var code interface{ Code() int }
	if errors.As(err, &code) && code.Code()&0xff == sqliteBusy {
		return ReasonBusy
	}
	return ReasonNone
}
