package checkout

import (
	"context"

	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/txn"
	"github.com/windrow-go/windrow/model"
)

// checkInWithEffects stores the batch, which is sorted, and runs the effects of the
// rows that it changed, in one transaction. Nobody else can write to the file until
// they are done.
func (s *SQLite) checkInWithEffects(ctx context.Context, batch []model.CheckIn) (model.Receipt, error) {
	var receipt model.Receipt
	err := settling{transact: txn.Immediate, store: func(tx *gorm.DB) ([]effect, error) {
		got, due, err := checkInEach(ctx, tx, batch)
		receipt = got
		return due, err
	}}.run(ctx, s.db, s.opts)
	if err != nil {
		return model.Receipt{}, err
	}
	return receipt, nil
}
