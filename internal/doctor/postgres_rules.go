package doctor

import "time"

// rules are the settings that matter to workers. A server's defaults are in order,
// but for a large table.
var rules = []rule{
	{"fsync", unless("on", Error), "on",
		"after a crash of the machine the tables may be damaged beyond repair, results and all"},
	{"full_page_writes", unless("on", Warning), "on",
		"a page that was half written when the machine crashed stays so, unless the file system excludes that (ZFS does)"},
	{"zero_damaged_pages", unless("off", Error), "off",
		"damaged pages are emptied without a word, and the rows on them are gone"},
	{"synchronous_commit", when("off", Warning), "on",
		"a crash of the server loses the commits of the last half second: results that were acknowledged are made again"},
	{"autovacuum", unless("on", Warning), "on",
		"every row is written twice; without vacuum the table and its indexes grow, and workers wade through dead entries"},
	{"track_counts", unless("on", Warning), "on",
		"autovacuum does not know what has changed, and so does nothing"},
	{"autovacuum_max_workers", below(2, Note), "3",
		"one long vacuum of another table keeps this one waiting"},
	{"autovacuum_naptime", above(5*time.Minute, Note), "1min",
		"vacuum comes to the table so seldom that millions of dead entries pile up in between"},
	{"autovacuum_vacuum_cost_delay", above(10*time.Millisecond, Warning), "2ms",
		"vacuum rests so long that it can't keep up with a fleet"},
	{"max_pred_locks_per_transaction", below(64, Warning), "64",
		"check-outs are serializable and take predicate locks: with less room for them whole indexes are locked, which makes conflicts, or none is left (53200)"},
	{"max_pred_locks_per_relation", perRelation, "-2",
		"after so few predicate locks on an index the whole of it is locked, and check-outs conflict"},
	{"max_pred_locks_per_page", perPage, "2",
		"after so few predicate locks on a page the whole page is locked, and check-outs conflict"},
	{"shared_buffers", sharedBuffers, "1GB",
		"the pages that the fleet works on do not stay in memory; a quarter of the machine's memory is usual"},
	{"max_wal_size", maxWAL, "8GB",
		"a fleet writes some 10 GB of WAL for ten million rows; every time that this much is full there is a checkpoint, " +
			"after which each page is written into the WAL as a whole"},
	{"checkpoint_timeout", under(5*time.Minute, Note), "15min",
		"after each checkpoint every page is written into the WAL as a whole: the more often, the more WAL"},
	{"checkpoint_completion_target", below(0.7, Note), "0.9",
		"checkpoints write in bursts, during which commits take longer"},
	{"jit", jit, "off",
		"small statements are compiled before they are run, which takes longer than running them"},
	{"enable_indexscan", unless("on", Warning), "on",
		"check-outs that do not go by an index lock the whole table against each other"},
	{"statement_timeout", statementTimeout, "0",
		"windrow bounds its own statements; load, reprocess, export, status and migrate may take longer than this on a large table, and are cut off"},
	{"transaction_timeout", within(10*time.Minute, Warning), "0",
		"load and export keep a transaction for as long as they take, and are cut off"},
	{"lock_timeout", within(time.Second, Note), "0",
		"windrow sets its own for workers; migrate, load and reprocess wait no longer than this"},
	{"idle_in_transaction_session_timeout", within(15*time.Second, Note), "1min",
		"a process that stalls for so long amid a load or an export loses its transaction"},
	{"idle_session_timeout", within(2*time.Minute, Note), "0",
		"a worker that waits for rows loses its connections and has to make new ones all the time"},
	{"old_snapshot_threshold", above(0, Note), "-1",
		"a long export may end with \"snapshot too old\""},
	{"max_locks_per_transaction", below(64, Note), "64",
		"the server has less room for locks than usual: many workers at once may find it full (53200)"},
	{"default_transaction_isolation", unless("read committed", Note), "read committed",
		"windrow says which level it needs, whatever the default; but other statements, such as an operator's UPDATE, may then fail with 40001 and have to be repeated"},
	{"track_activities", unless("on", Note), "on",
		"nobody can see what sessions do, nor who holds an old snapshot"},
}

type judge = func(setting, situation) Severity

func unless(value string, bad Severity) judge {
	return func(s setting, _ situation) Severity { return badIf(s.Value != value, bad) }
}

func when(value string, bad Severity) judge {
	return func(s setting, _ situation) Severity { return badIf(s.Value == value, bad) }
}

func below(least float64, bad Severity) judge {
	return func(s setting, _ situation) Severity { return badIf(s.number() < least, bad) }
}

// above and under are for times; a negative one stands for none.
func above(most time.Duration, bad Severity) judge {
	return func(s setting, _ situation) Severity { return badIf(s.number() >= 0 && s.duration() > most, bad) }
}

func under(least time.Duration, bad Severity) judge {
	return func(s setting, _ situation) Severity { return badIf(s.duration() < least, bad) }
}

// within is for time limits, which are off at 0.
func within(limit time.Duration, bad Severity) judge {
	return func(s setting, _ situation) Severity {
		return badIf(s.number() > 0 && s.duration() < limit, bad)
	}
}

func badIf(is bool, bad Severity) Severity {
	if is {
		return bad
	}
	return OK
}

// perRelation: a negative number is a share of those of a transaction.
func perRelation(s setting, in situation) Severity {
	most := s.number()
	if most < 0 {
		most = in.settings["max_pred_locks_per_transaction"].number()/-most - 1
	}
	return badIf(most < 31 && in.settings["max_pred_locks_per_transaction"].number() >= 64, Note)
}

func perPage(s setting, _ situation) Severity { return badIf(s.number() < 2, Note) }

func sharedBuffers(s setting, in situation) Severity {
	const usual = 128 << 20
	switch {
	case s.number() < usual && in.rows >= large:
		return Warning
	case s.number() < usual/2, s.number() <= usual && in.rows >= large:
		return Note
	default:
		return OK
	}
}

func maxWAL(s setting, in situation) Severity {
	switch {
	case s.number() < 256<<20:
		return Warning
	case s.number() < 4<<30 && in.rows >= large:
		return Note
	default:
		return OK
	}
}

func jit(s setting, in situation) Severity {
	cost, there := in.settings["jit_above_cost"]
	return badIf(s.Value == "on" && there && cost.number() >= 0 && cost.number() < 100_000, Note)
}

// statementTimeout: a check-in may wait 10 s for a lock alone.
func statementTimeout(s setting, _ situation) Severity {
	switch limit := s.duration(); {
	case limit == 0:
		return OK
	case limit < time.Minute:
		return Warning
	default:
		return Note
	}
}
