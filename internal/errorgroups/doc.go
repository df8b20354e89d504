// Package errorgroups puts the errors of millions of rows into a few groups of the
// same message, in bounded memory.
//
// Errors of one cause differ in what belongs to the row: ids, numbers, instants,
// addresses. [Message] puts placeholders there and leaves the words:
//
//	row 17: timed out after 1m30s        row <n>: timed out after <n>
//	user 4f1c09aa17b2 not found          user <hex> not found
//	dial tcp 10.0.0.7:5432: refused      dial tcp <ip>:<n>: refused
//
// The placeholders are <n> (a number, also a duration), <hex> (0x…, eight hex digits
// or more, a hardware address), <uuid>, <time> (a date, with or without a time of the
// day, or a time of the day with seconds), <ip>, <email>, and <id> for other mixtures
// of letters and digits. Letters before or after a number stay: user<n>, <n>MB.
//
// Some numbers are what a message is about. One of at most three digits stays
//
//   - directly after a word that says so: code, status, signal, errno, exit, HTTP,
//     also as the end of a name (statusCode, exit_code), and after "error" and a
//     blank: exit status 1, HTTP/1.1 503, code=404, os error 2;
//   - at the very beginning if it may be a status of HTTP: 404 Not Found.
//
// After SQLSTATE, all five characters stay.
//
// A quoted text may be either: the value of a row, or the name of what is wrong. So
// [Groups] tells messages apart by it as long as there are few; when the quoted texts
// of otherwise equal messages turn out to be many, these become one group with <text>
// for them.
package errorgroups
