package checkout

import (
	"database/sql"

	"gorm.io/gorm"
)

// Pool returns the store's connections, to look at their statistics; the store closes
// them. It is nil for a store that was made on a gorm.DB without a pool.
func (s *Postgres) Pool() *sql.DB { return poolOf(s.db) }

// Pool returns the store's connections, to look at their statistics; the store closes
// them.
func (s *SQLite) Pool() *sql.DB { return poolOf(s.db) }

func poolOf(db *gorm.DB) *sql.DB {
	pool, err := db.DB()
	if err != nil {
		return nil
	}
	return pool
}
