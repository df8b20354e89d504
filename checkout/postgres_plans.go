package checkout

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/windrow-go/windrow/internal/txn"
	"github.com/windrow-go/windrow/model"
)

// PlanFault is a hot statement that the server does not plan as it is meant to.
// Everything stays correct; the fleet gets slow, and its check-outs may conflict.
type PlanFault struct {
	Statement string // such as "claim"
	Found     string // the step that should not be there, such as "Seq Scan"
	Cure      string // what to do about it: SQL, or a setting to change
}

// fewestRows is how many rows the table must have for its plans to prove
// anything: a small table is rightly read as a whole.
const fewestRows = 5000

// CheckPlans has the server explain the statements that workers run all the time,
// with the same settings and likely arguments, and returns those that would read
// the table in another way than by the index meant. The statements are not run,
// and nothing is changed. It needs the rights of a worker.
//
// While the table has fewer than 5,000 rows, by the server's own estimate, there
// are no faults: such plans prove nothing.
func (s *Postgres) CheckPlans(ctx context.Context) ([]PlanFault, error) {
	facts, err := s.planFacts(ctx)
	if err != nil || facts.rows < fewestRows {
		return nil, err
	}
	return s.planFaults(ctx, facts, s.hotStatements(facts.middle))
}

func (s *Postgres) planFaults(ctx context.Context, facts *planFacts, groups []hotGroup) ([]PlanFault, error) {
	var faults []PlanFault
	for _, group := range groups {
		if err := s.explainPlans(ctx, group, facts.generic != never); err != nil {
			return nil, err
		}
		for _, h := range group.statements {
			if found, generic := h.fault(facts.generic); found != "" {
				faults = append(faults, PlanFault{h.name, found, s.planCure(facts, h.index, generic)})
			}
		}
	}
	return faults, nil
}

// hotGroup are statements that go out with the same settings.
type hotGroup struct {
	settings   []txn.Statement
	statements []*hotStatement
}

// hotStatement is one of the statements that workers run all the time.
type hotStatement struct {
	name  string
	sql   string
	args  pgx.NamedArgs // none: all its plans are alike
	index string        // the one that it is meant to read the table by

	custom  plan // for these arguments
	generic plan // for any
}

// The groups of hotStatements: those of the first and the last only read.
const (
	peeking = iota
	writing
	watching
)

// hotStatements are about rows from the id near on.
func (s *Postgres) hotStatements(near int64) []hotGroup {
	const n, lease, holder = 500, 60.0, "plans"
	batch := make([]model.CheckIn, n)
	for i := range batch {
		batch[i].ID, batch[i].Token, batch[i].Holder, batch[i].Verdict = near+int64(i), 1, holder, model.VerdictDone
	}
	cols, _ := columnsOf(batch) // fails only for different holders
	peeks := []*hotStatement{
		{name: "peek fresh", sql: fmt.Sprintf(s.sql.peekFresh, windowFor(peekBatches*n)), args: pgx.NamedArgs{"after": near, "up_to": int64(afterAll)}, index: queueIndex},
		{name: "sample", sql: s.sql.sample, args: pgx.NamedArgs{"ids": cols.ids[:samples]}, index: keyIndex},
		{name: "bounds", sql: s.sql.bounds, index: keyIndex},
		{name: "fresh bounds", sql: s.sql.freshBounds, index: queueIndex},
		{name: "peek due", sql: fmt.Sprintf(s.sql.peekDue, windowFor(2*n)), args: pgx.NamedArgs{"from": time.Now().Add(-time.Minute)}, index: queueIndex},
	}
	claim := pgx.NamedArgs{"keys": cols.ids, "holder": holder, "lease": lease, "space": s.light, "range": lightOf(cols.ids)}
	renew := pgx.NamedArgs{"lease": lease, "ids": cols.ids, "tokens": cols.tokens, "holder": holder}
	return []hotGroup{
		peeking: {settings: []txn.Statement{{SQL: byIndexSQL}}, statements: peeks},
		writing: {settings: []txn.Statement{settle}, statements: []*hotStatement{
			{name: "claim", sql: s.sql.claim, args: claim, index: keyIndex},
			{name: "check in done", sql: s.sql.checkInDone, args: cols.doneArgs(), index: keyIndex},
			{name: "check in", sql: s.sql.checkIn, args: cols.args(), index: keyIndex},
			{name: "renew", sql: s.sql.renew, args: renew, index: keyIndex},
		}},
		watching: {statements: []*hotStatement{
			{name: "agenda", sql: s.sql.agenda, index: queueIndex},
			{name: "newest claim", sql: s.sql.newest, index: queueIndex},
		}},
	}
}

// explainPlans fills in the plans of a group. Its settings are the transaction's.
func (s *Postgres) explainPlans(ctx context.Context, group hotGroup, generic bool) error {
	statements := append([]txn.Statement{{SQL: `SET TRANSACTION READ ONLY`}}, group.settings...)
	for _, h := range group.statements {
		explain := txn.Statement{SQL: explainSQL + h.sql, Rows: intoPlan(&h.custom)}
		if h.args != nil {
			explain.Args = []any{h.args}
		}
		statements = append(statements, explain)
	}
	if generic {
		statements = append(statements, txn.Statement{SQL: `SET LOCAL plan_cache_mode = force_generic_plan`})
		for _, h := range group.statements {
			more, err := h.explainGeneric(ctx)
			if err != nil {
				return err
			}
			statements = append(statements, more...)
		}
	}
	return s.inOneTrip(ctx, "check plans", statements...)
}

const explainSQL = `EXPLAIN (FORMAT JSON) `

// explainGeneric prepares the statement and explains it for no arguments in
// particular, which is why NULL will do for each. A statement prepared outlives
// its transaction, unless it is dropped; it is only made after the same statement
// has been explained once, so that nothing should go wrong in between.
func (h *hotStatement) explainGeneric(ctx context.Context) ([]txn.Statement, error) {
	if h.args == nil {
		return nil, nil
	}
	numbered, args, err := h.args.RewriteQuery(ctx, nil, h.sql, nil)
	if err != nil {
		return nil, fmt.Errorf("check plans: %s: %w", h.name, err)
	}
	nulls := strings.Join(slices.Repeat([]string{"NULL"}, len(args)), ", ")
	return []txn.Statement{
		{SQL: `PREPARE windrow_plan AS ` + numbered},
		{SQL: explainSQL + `EXECUTE windrow_plan(` + nulls + `)`, Rows: intoPlan(&h.generic)},
		{SQL: `DEALLOCATE windrow_plan`},
	}, nil
}

func intoPlan(p *plan) func(rows pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var text []byte
		if !rows.Next() {
			return nil // an error, which the rows tell
		}
		if err := rows.Scan(&text); err != nil {
			return err
		}
		var explained []struct{ Plan plan }
		if err := json.Unmarshal(text, &explained); err != nil {
			return err
		}
		for _, e := range explained {
			*p = e.Plan
		}
		return nil
	}
}

// fault looks at the plans that the server would run the statement by.
func (h *hotStatement) fault(use genericUse) (found string, generic bool) {
	allowed := scansBy(h.index)
	if h.args == nil || use != always {
		if found := h.custom.fault(allowed); found != "" {
			return found, false
		}
	}
	if h.args == nil || use == never || use == ifCheaper && h.generic.Cost >= h.custom.Cost+planningCost {
		return "", false
	}
	if found := h.generic.fault(allowed); found != "" {
		return found + " in the generic plan", true
	}
	return "", false
}
