// Package metrics measures a worker process and serves what it has measured to
// Prometheus (/metrics), and to whatever starts and stops processes (/livez,
// /readyz).
//
// [Worker] is what is measured. It stands between a processor and what it is given:
// [Worker.Store] and [Worker.Handler] return a store and a handler that take the
// time of each call, [Worker.Conflict] is for checkout.Options.OnConflict, and what
// the processor counts itself is read from its Stats when somebody asks. No label
// has a value that a row, a key, an error or an address could choose.
//
// [Listen] and [Serve] are the server. docs/operations.md tells what each metric
// means; a test holds it, its alert rules and the dashboard beside it to what is
// really exported.
package metrics
