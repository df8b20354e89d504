package doctor

import (
	"context"
	"fmt"
)

type deadRows struct {
	Dead, Live int64
	Rows       float64 // as last counted
	Vacuumed   float64 // seconds ago; negative: never, or not since the statistics were reset
	Threshold  float64
	Scale      float64
	Running    int64  // the pid of a vacuum of the table; 0: none
	Phase      string // of it
	Done       float64
	Blocked    bool
	Waiting    int64 // autovacuum workers that wait for a lock on the table
}

const deadRowsSQL = `
SELECT
	coalesce(s.n_dead_tup, 0) AS dead,
	coalesce(s.n_live_tup, 0) AS live,
	CAST(c.reltuples AS double precision) AS rows,
	CAST(coalesce(extract(epoch FROM clock_timestamp() - greatest(s.last_vacuum, s.last_autovacuum)), -1) AS double precision) AS vacuumed,
	CAST(coalesce(
		(SELECT o.option_value FROM pg_options_to_table(c.reloptions) AS o WHERE o.option_name = 'autovacuum_vacuum_threshold'),
		current_setting('autovacuum_vacuum_threshold')) AS double precision) AS threshold,
	CAST(coalesce(
		(SELECT o.option_value FROM pg_options_to_table(c.reloptions) AS o WHERE o.option_name = 'autovacuum_vacuum_scale_factor'),
		current_setting('autovacuum_vacuum_scale_factor')) AS double precision) AS scale,
	CAST(coalesce(v.pid, 0) AS bigint) AS running,
	coalesce(v.phase, '') AS phase,
	CAST(coalesce(100.0 * v.heap_blks_scanned / nullif(v.heap_blks_total, 0), 0) AS double precision) AS done,
	coalesce(a.wait_event_type = 'Lock', false) AS blocked,
	(
		SELECT count(*)
		FROM pg_locks AS l
		WHERE l.relation = c.oid AND NOT l.granted AND l.mode = 'ShareUpdateExclusiveLock'
	) AS waiting
FROM pg_class AS c
LEFT JOIN pg_stat_all_tables AS s ON s.relid = c.oid
LEFT JOIN pg_stat_progress_vacuum AS v ON v.relid = c.oid
LEFT JOIN pg_stat_activity AS a ON a.pid = v.pid
WHERE c.oid = CAST(@table AS oid)
LIMIT 1`

// lookAtDeadRows tells whether vacuum keeps up.
func lookAtDeadRows(ctx context.Context, p *patient) ([]Finding, error) {
	d, err := askOne[deadRows](ctx, p, deadRowsSQL, p.about())
	if err != nil {
		return nil, err
	}
	due := d.Threshold + d.Scale*max(0, d.Rows)
	text := fmt.Sprintf("%s, vacuum is due at %s; %s", count(d.Dead, "dead row"), comma(int64(due)), d.vacuum())
	if d.Dead < 10_000 || float64(d.Dead) < 2*due {
		return fine(text), nil
	}
	f := Finding{Severity: Warning, What: text,
		Why:  "vacuum does not keep up: the table and its indexes grow, and workers wade through dead entries; what holds it up may stand under oldest snapshot, table locks, settings or table",
		Cure: fmt.Sprintf("VACUUM (VERBOSE, INDEX_CLEANUP ON) %s;  -- as its owner: does it now, and says what it could not remove", p.table)}
	if d.Running != 0 && !d.Blocked {
		f.Severity = Note
		f.Cure = fmt.Sprintf("SELECT * FROM pg_stat_progress_vacuum WHERE pid = %d;  -- how far it is", d.Running)
	}
	return []Finding{f}, nil
}

// vacuum says what the vacuum of the table does, or when the last was.
func (d deadRows) vacuum() string {
	switch {
	case d.Running != 0 && d.Blocked:
		return fmt.Sprintf("a vacuum (pid %d) is under way, and waits for a lock", d.Running)
	case d.Running != 0:
		return fmt.Sprintf("a vacuum (pid %d) is under way: %s, %.0f %% read", d.Running, orDefault(d.Phase, "its phase is hidden from this role"), d.Done)
	case d.Waiting > 0:
		return "a vacuum waits for a lock on the table"
	case d.Vacuumed < 0:
		return "there was no vacuum yet"
	default:
		return "the last vacuum was " + spell(seconds(d.Vacuumed)) + " ago"
	}
}
