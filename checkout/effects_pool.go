package checkout

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"

	"gorm.io/gorm"
)

// effectPool is the transaction as one effect sees it. Like PostgreSQL it refuses
// further statements once one has failed, until the effect rolls back to a savepoint
// of its own. SQLite would go on, and, where the failure has ended the transaction,
// go on without one.
type effectPool struct {
	tx gorm.ConnPool

	mu     sync.Mutex
	failed error // that of the statement which has doomed the transaction
	over   bool
}

var (
	errEnds = errors.New("an effect must not commit or roll back the transaction that it is a part of: return nil, or an error")
	errOver = errors.New("the effect has returned: its transaction is no longer its own")
)

// session makes p what gorm speaks to. Nested transactions are just run: their
// savepoints would be one more round trip each.
func (p *effectPool) session(ctx context.Context, tx *gorm.DB) *gorm.DB {
	s := tx.Session(&gorm.Session{
		NewDB:                    true,
		Context:                  ctx,
		DisableNestedTransaction: true,
		SkipDefaultTransaction:   true,
	})
	s.Statement.ConnPool, s.ConnPool = p, p
	return s
}

// close ends the effect's access, and returns the failure that has doomed the
// transaction, if one has.
func (p *effectPool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	return p.failed
}

// answers tells whether the transaction can still do something: neither is its
// connection lost nor has it been doomed unseen.
func (p *effectPool) answers(ctx context.Context) bool {
	_, err := p.tx.ExecContext(ctx, `SELECT 1`)
	return err == nil
}

// admit returns why a statement is refused.
func (p *effectPool) admit(query string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.over:
		return errOver
	case p.failed != nil && !rollsBackTo(query):
		return fmt.Errorf("refused, since an earlier statement failed: %w", p.failed)
	}
	return nil
}

// note keeps the first failure, and forgets it when the effect has rolled back to
// before it.
func (p *effectPool) note(query string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil && p.failed == nil:
		p.failed = err
	case err == nil && rollsBackTo(query):
		p.failed = nil
	}
}

// rollsBackTo tells whether the statement is ROLLBACK TO.
func rollsBackTo(query string) bool {
	words := strings.Fields(strings.ToUpper(query[:min(len(query), 100)]))
	return len(words) > 2 && words[0] == "ROLLBACK" && words[1] == "TO"
}

func (p *effectPool) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	if err := p.admit(query); err != nil {
		return nil, err
	}
	stmt, err := p.tx.PrepareContext(ctx, query)
	p.note(query, err)
	return stmt, err
}

func (p *effectPool) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := p.admit(query); err != nil {
		return nil, err
	}
	res, err := p.tx.ExecContext(ctx, query, args...)
	p.note(query, err)
	return res, err
}

func (p *effectPool) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := p.admit(query); err != nil {
		return nil, err
	}
	rows, err := p.tx.QueryContext(ctx, query, args...)
	p.note(query, err)
	return rows, err
}

// QueryRowContext can't return an error of its own: a row whose context has ended
// stands for a refusal.
func (p *effectPool) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if err := p.admit(query); err != nil {
		refused, cancel := context.WithCancelCause(ctx)
		cancel(err)
		return p.tx.QueryRowContext(refused, query, args...)
	}
	row := p.tx.QueryRowContext(ctx, query, args...)
	p.note(query, row.Err())
	return row
}

// Commit and Rollback make gorm take a nested transaction for what it is.
func (p *effectPool) Commit() error   { return p.refuseToEnd() }
func (p *effectPool) Rollback() error { return p.refuseToEnd() }

func (p *effectPool) refuseToEnd() error {
	p.note("", errEnds)
	return errEnds
}
