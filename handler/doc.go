// Package handler is what the handler of a row can be besides Go code:
//
//   - [JQ]: a jq program, run inside this process.
//   - [Command]: a process for each row, without a shell or through sh -c.
//   - [Stream]: children that live for many rows and speak JSON Lines.
//   - [HTTP]: a service, by a request for each row or for many.
//
// # The contract
//
// Every kind has the method
//
//	Handle(ctx context.Context, row model.Dataset) (any, error)
//
// and may be called from many goroutines at once. The result is a value that
// encoding/json can marshal; a json.RawMessage is taken as it is, and nil is the
// JSON null. An error marked by [model.Permanent] fails the row at once, one
// marked by [model.RetryAfter] says when to try again, and any other is retried
// in the usual way. A call that was cut short by its context returns the
// context's cause, which says nothing about the row.
//
// A handler may be called more than once for the same row: a worker can die
// after the handler's effects and before the check-in. What must not happen
// twice is to be guarded by the row's idempotency key.
//
// # Fingerprints
//
// Each kind has a method Fingerprint: twelve hexadecimal digits that stay the
// same for the same program, arguments and scripts, on every machine and in
// every version of windrow, and that change when one of them does. It is worked
// out once, when the handler is made, and is the default version of the results.
package handler
