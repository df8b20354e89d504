// Command peers works the rows of windrow's benchmark through other people's
// queues, on the same machine and the same server settings. Each run is a line of
// JSON, a [bench.Result], on the standard output.
//
//	go run . --peer river --rows 200000
//
// The parent makes a database, fills the queue, starts the peer's worker processes
// (this program again) and watches the database until nothing is left in it:
//
//	install ──▶ enqueue ──▶ workers ready ──go──▶ watch ──nothing left──▶ stop, tally
//	                                       └────── measured ──────┘
package main
