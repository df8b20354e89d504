//go:build race

package main_test

// underRace says that the tests run with the race detector, and so the program.
const underRace = true
