package checkout

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/windrow-go/windrow/internal/txn"
	"github.com/windrow-go/windrow/model"
)

// Marked tells whether m has been marked, by anybody.
func (s *Postgres) Marked(ctx context.Context, m model.Mark) (bool, error) {
	var found []bool
	err := s.inOneTrip(ctx, "look for a mark", settle, txn.Statement{
		SQL:  s.sql.marked,
		Args: []any{markArgs(m)},
		Rows: into(&found),
	})
	return len(found) > 0, err
}

// Mark marks m for good; it is committed when Mark returns nil. No claim is needed:
// what m tells of has happened, whoever holds the row by now. Marking again is fine.
func (s *Postgres) Mark(ctx context.Context, m model.Mark) error {
	return s.inOneTrip(ctx, "mark", settle, txn.Statement{SQL: s.sql.mark, Args: []any{markArgs(m)}})
}

func markArgs(m model.Mark) pgx.NamedArgs {
	return pgx.NamedArgs{"id": m.ID, "round": m.Round, "name": m.Name}
}

const markedSQL = `
SELECT true
FROM {schema}.marks
WHERE id = @id
	AND round = @round
	AND name = @name`

const markSQL = `
INSERT INTO {schema}.marks (id, round, name)
VALUES (@id, @round, @name)
ON CONFLICT DO NOTHING`
