package checkout

import (
	"context"

	"gorm.io/gorm"

	"github.com/windrow-go/windrow/model"
)

// Marked tells whether m has been marked, by anybody.
func (s *SQLite) Marked(ctx context.Context, m model.Mark) (bool, error) {
	found := false
	err := s.read(ctx, "look for a mark", func(tx *gorm.DB) error {
		return tx.Raw(sqliteMarkedSQL, m.ID, m.Round, m.Name).Scan(&found).Error
	})
	return found, err
}

const sqliteMarkedSQL = `SELECT EXISTS (SELECT 1 FROM marks WHERE id = ? AND round = ? AND name = ?)`

// Mark marks m for good; it is committed when Mark returns nil. No claim is needed:
// what m tells of has happened, whoever holds the row by now. Marking again is fine.
func (s *SQLite) Mark(ctx context.Context, m model.Mark) error {
	return s.write(ctx, "mark", func(tx *gorm.DB) error {
		return tx.Exec(sqliteMarkSQL, m.ID, m.Round, m.Name).Error
	})
}

const sqliteMarkSQL = `INSERT INTO marks (id, round, name) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`
