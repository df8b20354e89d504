package checkout

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/txn"
	"github.com/windrow-go/windrow/model"
)

// ByID reads one row. now is the database's clock, for Dataset.State.
func (s *SQLite) ByID(ctx context.Context, id int64) (row model.Dataset, now time.Time, err error) {
	return s.one(ctx, `SELECT `+nowSQL+` AS now,`+datasetColumns+` FROM datasets AS d WHERE d.id = ?`, id)
}

// ByKey reads the row with the caller's key.
func (s *SQLite) ByKey(ctx context.Context, key string) (row model.Dataset, now time.Time, err error) {
	return s.one(ctx, `SELECT `+nowSQL+` AS now,`+datasetColumns+`
		FROM dataset_keys AS k JOIN datasets AS d ON d.id = k.id WHERE k.key = ?`, key)
}

// sqliteRow is a row as the file has it: instants in microseconds, JSON as text.
type sqliteRow struct {
	ID           int64
	Key          *string
	Data         string
	IsProcessed  bool
	AvailableAt  int64
	LastCheckout int64
	Checkouts    int32
	CheckedOutBy *string
	Attempts     int32
	Losses       int32
	Round        int32
	Refunds      int32
	RunID        *int64
	RedoRun      *int64
	Result       *string
	Error        *string
	LastError    *string
	ProcessedAt  *int64
	Version      *string
	Now          int64
}

func (r sqliteRow) dataset() model.Dataset {
	d := model.Dataset{
		ID: r.ID, Key: r.Key, Data: json.RawMessage(r.Data), IsProcessed: r.IsProcessed,
		AvailableAt: instant(r.AvailableAt), LastCheckout: instant(r.LastCheckout),
		Checkouts: r.Checkouts, CheckedOutBy: r.CheckedOutBy,
		Attempts: r.Attempts, Losses: r.Losses, Round: r.Round, Refunds: r.Refunds, RunID: r.RunID, RedoRun: r.RedoRun,
		Error: r.Error, LastError: r.LastError, Version: r.Version,
	}
	if r.Result != nil {
		d.Result = json.RawMessage(*r.Result)
	}
	if r.ProcessedAt != nil {
		at := instant(*r.ProcessedAt)
		d.ProcessedAt = &at
	}
	return d
}

func (s *SQLite) one(ctx context.Context, query string, arg any) (model.Dataset, time.Time, error) {
	var found []sqliteRow
	err := s.read(ctx, "read a row", func(tx *gorm.DB) error {
		return tx.Raw(query, arg).Scan(&found).Error
	})
	if err != nil {
		return model.Dataset{}, time.Time{}, err
	}
	if len(found) == 0 {
		return model.Dataset{}, time.Time{}, ErrNotFound
	}
	row := found[0].dataset()
	row.Job = s.job
	return row, instant(found[0].Now), nil
}

// Export calls each for every processed row in the order of ids, all as they
// were at one instant. Rows are streamed: memory does not grow with the table.
// It stops at each's first error and returns it.
func (s *SQLite) Export(ctx context.Context, opts ExportOptions, each func(Finished) error) error {
	query := fmt.Sprintf(`
		SELECT d.id, d.key, %s, d.result, d.error
		FROM datasets AS d
		WHERE d.is_processed%s
		ORDER BY d.id`, opts.dataColumn(), opts.condition())
	var failed error
	err := txn.Deferred(ctx, s.db, func(tx *gorm.DB) error {
		rows, err := tx.Raw(query).Rows()
		if err != nil {
			return err
		}
		failed, err = eachFinished(rows, each)
		return err
	})
	if failed != nil {
		return failed
	}
	return explain("export", err)
}
