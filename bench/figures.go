package bench

import "strings"

// AboutFigure says what one of a result's own [Result.Figures] means; "" for a name
// that is unknown.
func AboutFigure(name string) string {
	switch {
	case strings.HasPrefix(name, "table_megabytes_"), strings.HasPrefix(name, "index_megabytes_"), strings.HasPrefix(name, "client_megabytes_"):
		return "size of the table, of its indexes, of the largest worker process, after that part of the time"
	}
	return map[string]string{
		"last_1_percent_seconds":     "time for the last hundredth of the rows",
		"last_10_percent_seconds":    "time for the last tenth of the rows",
		"steady_rows_per_second":     "rate between the first and the last quarter of the rows",
		"time_to_steady_time":        "whole time, over what it would have been at the steady rate",
		"slots_busy":                 "share of all slots' time that was spent in handlers",
		"least_to_mean_share":        "rows of the process that got fewest, over the mean",
		"held_rows_median":           "rows held by the fleet, waiting ones included; looked at twice a second",
		"held_rows_most":             "the most of these",
		"workers_killed":             "workers killed without warning",
		"lease_seconds":              "the lease of each claim",
		"rows_lost_and_worked_again": "rows that were held by a worker that died",
		"first_row_back_seconds":     "from a worker's death until the first of its rows was checked out again",
		"last_row_back_seconds":      "the same, the last of them",
		"rounds":                     "how often all rows were put back",
		"put_back_rows":              "rows put back while the fleet worked",
		"put_back_rows_per_second":   "the same, in a second of the turns in which rows were put back",
		"speed_beside":               "rate of a turn in which rows were put back, over that of its neighbours: the median turn",
		"speed_beside_least":         "the same, the worst turn",
		"put_back_heap_megabytes":    "most memory in the heap of the process that put them back",
		"looking_seconds":            "what looking at the peer's own table took in all",
	}[name]
}
