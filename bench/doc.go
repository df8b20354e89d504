// Package bench measures windrow on a real server with real worker processes, beside
// plain loops that do the same work in other ways. It is what windrow bench runs:
//
//	windrow bench throughput --rounds 3
//
// Each scenario is a list of runs. For each the table is filled anew, a fleet is
// started (this program again, see [IsWorker]), and what the workers report becomes
// a [Result], unless a look at the table shows that a row was lost or handed out
// twice. A private PostgreSQL with fsync on is started for it and removed at the
// end, unless a server is given; there everything happens in a schema of its own.
//
// Package report makes a page of saved results. The module in peers, which is apart
// so that its dependencies stay out of ours, runs other people's queues.
package bench
