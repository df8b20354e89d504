package checkout

import (
	"database/sql"
	"encoding/json"

	"gorm.io/gorm"
)

func newDiff() Diff { return Diff{Counts: map[Change]int64{}} }

// read streams the comparisons of a run's rows and keeps some of each change.
func (d *Diff) read(tx *gorm.DB, query string, run int64, samples int) error {
	*d = newDiff()
	rows, err := tx.Raw(query, run).Rows()
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		c, err := scanComparison(rows)
		if err != nil {
			return err
		}
		if d.Counts[c.Change]++; c.Change != Same && c.Change != Pending && d.Counts[c.Change] <= int64(samples) {
			d.Samples = append(d.Samples, c)
		}
	}
	return rows.Err()
}

func scanComparison(rows *sql.Rows) (c Comparison, err error) {
	var old, new *string
	err = rows.Scan(&c.Change, &c.ID, &c.Key, &old, &c.OldError, &new, &c.NewError)
	c.OldResult, c.NewResult = rawOf(old), rawOf(new)
	return c, err
}

func rawOf(text *string) json.RawMessage {
	if text == nil {
		return nil
	}
	return json.RawMessage(*text)
}
