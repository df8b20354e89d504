package main

import "github.com/dustin/go-humanize"

// plural counts things: 1 row, 2 rows, 1,234 rows.
func plural(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return humanize.Comma(n) + " " + one + "s"
}

// were is the verb that goes with so many things.
func were(n int64) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// are is were of the present.
func are(n int64) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
