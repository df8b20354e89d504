//go:build !race

package main_test

// underRace says that the tests run with the race detector, and so the program.
const underRace = false

// fewer is the number of rows that tests on SQLite take.
func fewer(rows, _ int) int { return rows }
