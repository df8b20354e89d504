// Package checkout holds every statement on a datasets table: peek, check out,
// renew, release, check in, reprocess, load, export and the counts. [Postgres]
// and [SQLite] are two small stores that pass one conformance test; a caller,
// usually package processor, sees no difference.
//
// # How a check-out works
//
// Many claimers, SERIALIZABLE, and hardly ever a conflict. It takes three things.
//
// Look first, at READ COMMITTED. A peek lists the keys of a few batches of rows in
// key order, by the partial index, from this worker's cursor on. It promises
// nothing, and leaves no predicate locks.
//
// Start elsewhere. Each worker's cursor begins at a random key and walks on from
// there, around the whole table. Spread like that, the claims of a fleet touch
// different rows, pages and index leaves. Starting all at the head of the queue,
// 8 claimers of 500 rows managed 13,000 rows/s with 78 % conflicts; spread,
// 97,000 rows/s with 0.13 %.
//
// When it comes upon a stretch that is finished, others have been there, and it
// lands somewhere else: where a sample of 64 random ids, read by the primary key,
// meets fresh rows. Looking for them by the index would be dear, above all while
// somebody holds an old snapshot, since the entries of all rows finished lately have
// to be waded through, by each process of the fleet. So a look reaches no further than
// some 4,000 ids while it takes long and finds little; a walker remembers which
// stretches it has seen finished, and where rows may have been left: the keys that it
// left to others, and those before a place where it landed amid fresh rows. These are
// tried before it looks blindly. What is put back behind its back it meets when nothing
// is left elsewhere, and once a minute. (8 processes draining 500,000 rows beside an
// old snapshot, a run of each: 24,500 rows/s with unbounded looks, 34,900 with looks of
// up to 16,000 ids.)
//
// Who has looked in vain for a tenth of a second rests. (Only after five seconds without
// a row it looks for longer, and further: what is left may be rows that nobody knows.) In
// the tail all that is left are the rows that others have in view, and a fleet that
// goes on looking takes the server's time from those: of 300,000 rows 40 processes took
// 3.8 s for the last tenth, the median of 11 runs, half of it for looks; 3.0 s, of 6
// runs, since they rest.
//
// Claim by key. One UPDATE over exactly those keys in a SERIALIZABLE transaction,
// guarded by "not processed and available", returns the rows that were still
// free. What somebody else has taken meanwhile just does not come back. A
// conflict (SQLSTATE 40001) is tried again from BEGIN: at once, elsewhere and with
// half the rows, then with growing, jittered delays.
//
// Towards the end all workers meet at the same few rows. There a traffic light
// keeps them apart: a transaction-scoped advisory lock on each range of 4,096
// ids (of 512 for claims of up to 16 rows), tried inside the claim. Red means aim
// elsewhere, not wait. Nothing depends on it: without it everything is as correct,
// only slower in the last percent (draining 300,000 rows by 40 claimers: 5.4 s with it, 7.9 s without, 47 s when
// claiming where one looks, with random starts).
//
// Each of these transactions is one message to the server: BEGIN, the settings, the
// statement and COMMIT leave together. It is over as fast as the server can carry
// it out, whatever else keeps the worker busy, and a worker that is suspended or
// cut off leaves nothing open. A process's peeks, claims and check-ins follow one
// another on one connection, since every further server process has to map and
// cache the same pages again (draining 400,000 rows by 8 processes: 45
// microseconds of the server's time a row; on up to three connections each, 58).
//
// What lost against this, on 2 cores with PostgreSQL 15, fsync on, rows of about
// 200 bytes, 40 claimers of 100 rows:
//
//	serializable, ORDER BY last_checkout LIMIT n         9,100 rows/s, 91-97 % conflicts
//	READ COMMITTED, head of the queue, SKIP LOCKED      26,000 rows/s
//	serializable and SKIP LOCKED                         5,200 rows/s, 90-96 % conflicts
//	serializable, hashed lanes                          15,600 rows/s, 40-75 % conflicts
//	serializable, each claimer elsewhere                49,000-77,000 rows/s, 0-0.3 %
//
// And what was not worth it, 8 processes in turn with the above: claiming the next ids
// without a look where all before them were fresh, 4 % faster, but the last tenth of a
// drain by 40 processes took a tenth longer; claiming a stretch by its ends instead of by
// its keys, no difference; check-outs with synchronous_commit off, 4 % faster, but after
// a crash of the server rows would be handed out that a worker still holds; READ
// COMMITTED claims, whose races would have to be kept apart otherwise, a few per cent.
//
// # How a claim is kept and ended
//
// The claim's token is the row's checkouts counter, which only grows. Check-in,
// renewal and release carry token and holder in their WHERE, so that once a newer
// claim exists, the older can change nothing. A check-in may be sent again when
// its answer was lost: a row that stands as the check-in leaves it counts as
// stored, any other as lost. Of a batch all of whose rows are done, those that a run
// wants again are stored by a transaction of their own; on SQLite it is one statement if
// all of it is accepted, and else done again row by row. (SQLite, 40 slots, rows of 200
// bytes, 300,000 of them: 12,200 rows/s with each row by itself, 21,500 by batches, the
// means of two runs in turn beside other load.)
//
// A check-in with effects is the one transaction here that stays open between its
// statements: the same guarded UPDATE, then the effects of just those rows that it
// changed, then COMMIT. So an effect happens together with its row's outcome, or not
// at all.
//
// A row's available_at is its vesting time: the row may be checked out once that
// is past. The epoch, the sentinel, marks fresh rows; a lease, a retry's delay and
// a due time are future instants. One condition on one partial index finds all of
// them, and every claim carries its own lease.
//
// # The clock
//
// Every instant is the database's, never a worker's. On PostgreSQL columns are
// timestamptz; on SQLite integers, microseconds since the epoch, UTC.
package checkout
