// Package doctor looks at a job's database as an operator would: at the server, its
// settings and its other users, at the tables and indexes as they are on the disk, at
// the way there and at the role's rights. It says what it found, why that matters to
// workers, and the command that mends it.
//
// It changes nothing: on PostgreSQL every look is a READ ONLY transaction of one
// round trip, on SQLite the file is opened for reading, and none is ever made.
//
// Each look is a check, a small function in a table, with a timeout of its own. One that can't
// be made (a right is missing, the server is of an old version, a table is locked)
// becomes a finding that says so, and the others go on.
package doctor
