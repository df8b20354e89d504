//go:build race

package main_test

// underRace says that the tests run with the race detector, and so the program.
const underRace = true

// fewer is the number of rows that tests on SQLite take: its machine, which is Go
// code too, is ten times slower when it is watched.
func fewer(_, watched int) int { return watched }
