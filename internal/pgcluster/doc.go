// Package pgcluster runs private, throw-away PostgreSQL servers: one folder with
// its own data, port and unix socket, which nobody else uses and which is gone
// afterwards. Tests and benchmarks use it; nothing on the machine that belongs to
// somebody else is touched, no running server and no installed configuration.
//
// The server is a direct child of this process, so its pid is known and it can be
// killed as a crash would. A guard, a small shell waiting on a pipe from this
// process, stops the server and removes its folder when this process ends without
// doing so, by SIGKILL even.
//
//	Start ──▶ running ──Kill, StopFast──▶ down ──Restart──▶ running
//	             └───────────Stop──────────┴──▶ gone, with its folder
//
// Unix systems only. When started by root, the programs run as the user postgres
// (or nobody), since PostgreSQL refuses root.
package pgcluster
