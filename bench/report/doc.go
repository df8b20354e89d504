// Package report turns saved benchmark results into a page: benchmarks.md with its
// charts beside it. [Read] gathers the results, [Write] makes the page.
//
// Results that differ only in their round belong together: what is shown of them is
// the median. Subjects are compared round by round, because the rounds of two
// subjects follow each other closely while the machine may drift over an hour.
package report
