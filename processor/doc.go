// Package processor is the worker process: it checks rows out of a table, gives
// each to a [Handler], and checks the outcomes in. It knows no database; what it
// needs of one is the [Store].
//
//	       check out (1 claimer)        slots (Concurrency)         check in (1 committer)
//	table ──────────────────────▶ buffer ───────────▶ handler ───────────▶ outcomes ──────▶ table
//	          ▲  adaptive batch     │  renewer: keeps what is held alive, in batches,
//	          └─────────────────────┘  once a third of its lease is gone
//
// # What a handler may count on
//
// A row is handed out at least once, and its outcome is stored at most once a
// round. The handler runs with no transaction open. Its context ends early only
// for a reason that context.Cause tells: the row's Timeout, [ErrLeaseLost] (the
// database says that somebody else has the row by now: the result would be
// refused, so it is dropped), or [ErrStopping] (the grace period of a stop is
// over). An error is tried again later, up to MaxAttempts; [Permanent] fails the
// row at once; [RetryAfter] says how long to wait. A panic, and a handler that
// ends its goroutine, are errors of that row and of nothing else.
//
// Whatever a handler returns, its row gets an outcome. A result that a database
// can't hold as it is, is made safe and the row's last error says so; one that
// can't be made safe fails the row with the reason, and so does one that the
// database refuses: its batch is halved until the guilty row stands alone.
//
// A row whose worker was lost while it was held (model.Dataset.Losses) runs alone:
// nothing else is held beside it, so that if the worker is lost again it is known
// which row did it, and no other is charged.
//
// # How much is held
//
// About a quarter of a second of work by the measured time of the handler, at
// least one row a slot, at most twice MaxBatch, and at most 32 MiB of data.
// Finished rows count as held until their outcome is stored, and a slot waits
// while 64 MiB of results are unstored: memory doesn't grow when the database is
// slow or gone. Rows that have stood in the buffer for a third of their lease,
// because the work turned out longer than thought, are given back.
//
// # When the handler can't serve
//
// An error marked by [Unavailable] is not the row's fault, and neither is one of
// twenty different rows that fail one after the other. Such rows are given back
// without losing an attempt, and the worker slows down: it starts one row now and
// then to probe, until one succeeds.
//
// # When the database is gone
//
// Claiming stops; handlers go on, and what they finish is kept. A row whose lease
// may have run out isn't started, but a handler is cancelled only when the
// database says that the row is lost. The connection is tried with growing,
// jittered pauses, for as long as it takes. When it is back, what is held is
// renewed first, then what is finished is checked in, then claiming goes on.
//
// # The order of things at a stop
//
//  1. No further check-out is begun, no further row is started. A check-out that
//     is under way may end (5 s at most), since cutting it off can leave rows
//     held that nobody knows of.
//  2. Rows that have not been started are released, their attempt refunded.
//  3. Handlers go on for the Grace period; then their contexts are cancelled with
//     [ErrStopping]. A row whose handler returns an error after that is released,
//     its attempt refunded: it is not the row's fault.
//  4. A handler that has not returned 5 s later is left behind, and [Processor.Run] returns
//     a [*StuckError] that names its row.
//  5. Outcomes are stored all through this; what is left after the last handler
//     has 30 s.
package processor
