// Package schedule runs regular and on-demand operations, one instance of each at a
// time, on as many machines as you like.
//
// A [Schedule] is a kind of operation: when it runs, what it runs, and which lock its
// runs take. A [Run] waits for its due time, runs, and stays as history. When a
// regular run starts, or is skipped or cancelled, its successor is entered in the
// same transaction, at the first time after now; so a late start does not end a
// schedule, and times that were missed become one run, or none, but never many.
//
// A [Store] keeps both in the tables schedules and schedule_runs, in PostgreSQL or in
// an SQLite file. A [Scheduler] starts what is due: in a daemon ([Scheduler.Serve]) or
// once ([Scheduler.Tick]). Several may work on one database.
//
// # One instance at a time
//
// One run at a time has a lock, by default that of its schedule. Who has it stands in
// the run's row, of which a unique index lets one be running for each lock: that
// decides, whatever else goes wrong. Whether the holder still lives is told
//
//   - on PostgreSQL by an advisory lock of the holder's session, which ends with its
//     connection. The holder watches the connection, and stops its runs when it is
//     lost. Keep-alives on both sides find a connection that is gone without a word;
//   - behind a pooler, which is noticed, and on SQLite by a lease in the row, which
//     the holder renews.
//
// Both kinds heed each other. A run whose holder is gone is marked abandoned by the
// next scheduler that looks, within a minute, and its lock is free. It is not run
// again: its schedule goes on with the next time.
//
// # Clock
//
// The database's clock decides what is due.
package schedule
