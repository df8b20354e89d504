package doctor

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// setting is a server's setting as it holds for this role in this database.
type setting struct {
	Name, Value, Unit string
	Source            string // who set it: "default", "configuration file", "user", "database", "client", …
	Context           string // when it can be set: "postmaster" at start, "sighup" by reloading, "user" at any time
}

const settingsSQL = `
SELECT
	CAST(name AS text) AS name,
	setting AS value,
	coalesce(unit, '') AS unit,
	source,
	context
FROM pg_settings
WHERE name = ANY (CAST(@names AS text[]))`

// readSettings reads settings by name; one that this server doesn't have is missing.
// The guard would be found among them.
func readSettings(ctx context.Context, p *patient, names ...string) (map[string]setting, error) {
	list, err := askAfter[setting](ctx, p, nil, settingsSQL, pgx.NamedArgs{"names": names})
	byName := make(map[string]setting, len(list))
	for _, s := range list {
		byName[s.Name] = s
	}
	return byName, err
}

// number is the value in bytes, milliseconds or its own unit.
func (s setting) number() float64 {
	v, err := strconv.ParseFloat(s.Value, 64)
	if err != nil {
		return 0
	}
	factor, ok := map[string]float64{"B": 1, "kB": 1 << 10, "8kB": 8 << 10, "16kB": 16 << 10, "MB": 1 << 20, "ms": 1, "s": 1000, "min": 60_000}[s.Unit]
	if !ok || v < 0 {
		return v
	}
	return v * factor
}

// duration is the value of a setting that is a time.
func (s setting) duration() time.Duration {
	return time.Duration(s.number() * float64(time.Millisecond))
}

// shown is the value for people.
func (s setting) shown() string {
	switch {
	case s.Unit == "ms" || s.Unit == "s" || s.Unit == "min":
		return spell(s.duration())
	case s.Unit != "" && s.number() > 0:
		return size(int64(s.number()))
	default:
		return s.Value
	}
}

// cure sets it where it was set.
func (s setting) cure(p *patient, want string) string {
	role, name := quoted(p.session.Role), quoted(p.session.Database)
	assign := fmt.Sprintf("SET %s = %s;", s.Name, literal(want))
	switch {
	case s.Source == "client" || s.Source == "environment variable":
		return fmt.Sprintf("# take %s out of the address, or out of PGOPTIONS", s.Name)
	case s.Source == "database user":
		return fmt.Sprintf("ALTER ROLE %s IN DATABASE %s %s", role, name, assign)
	case s.Source == "user":
		return fmt.Sprintf("ALTER ROLE %s %s", role, assign)
	case s.Source == "database":
		return fmt.Sprintf("ALTER DATABASE %s %s", name, assign)
	case s.Source == "command line":
		return fmt.Sprintf("# the server was started with %s on its command line: start it without, or with %s", s.Name, want)
	case s.Context == "user" || s.Context == "superuser":
		return fmt.Sprintf("ALTER ROLE %s %s  -- new connections have it", role, assign)
	case s.Context == "postmaster":
		return fmt.Sprintf("ALTER SYSTEM %s  -- as a superuser; then restart the server", assign)
	default:
		return fmt.Sprintf("ALTER SYSTEM %s  -- as a superuser\nSELECT pg_reload_conf();", assign)
	}
}

// rule says when a setting is off, and what to set instead.
type rule struct {
	name string
	// judge says how bad its value is; OK: not at all.
	judge func(s setting, in situation) Severity
	want  string
	why   string
}

// situation is what a setting is judged by besides itself.
type situation struct {
	rows     int64
	settings map[string]setting
}

// large is from when on a table's work takes long enough for the settings of a
// server's default to be felt.
const large = 1_000_000

func lookAtSettings(ctx context.Context, p *patient) ([]Finding, error) {
	var names []string
	for _, r := range rules {
		names = append(names, r.name)
	}
	names = append(names, "jit_above_cost", "max_pred_locks_per_transaction")
	settings, err := readSettings(ctx, p, names...)
	if err != nil {
		return nil, err
	}
	var findings []Finding
	in := situation{rows: p.rows, settings: settings}
	for _, r := range rules {
		s, there := settings[r.name]
		if !there {
			continue
		}
		if severity := r.judge(s, in); severity != OK {
			findings = append(findings, Finding{Severity: severity, What: s.Name + " = " + s.shown() + whose(s, p), Why: r.why, Cure: s.cure(p, r.want)})
		}
	}
	return orFine(findings, fmt.Sprintf("all %d that matter are as they should be", len(rules))), nil
}

// whose says for whom it is set, if not for all.
func whose(s setting, p *patient) string {
	switch s.Source {
	case "user", "database user":
		return ", set for role " + p.session.Role
	case "database":
		return ", set for database " + p.session.Database
	case "client", "environment variable":
		return ", set by the address or PGOPTIONS"
	default:
		return ""
	}
}
