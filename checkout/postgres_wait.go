package checkout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"

	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/model"
)

// Agenda tells a worker that found nothing what there is to wait for.
func (s *Postgres) Agenda(ctx context.Context) (model.Agenda, error) {
	var row struct {
		Next *float64
		Open bool
	}
	err := s.readCommitted(ctx, "look ahead", func(tx *gorm.DB) error {
		return tx.Raw(s.sql.agenda).Scan(&row).Error
	})
	if err != nil {
		return model.Agenda{}, err
	}
	return agendaOf(row.Next, row.Open), nil
}

// agendaOf takes the seconds until the next row becomes available, if any waits.
func agendaOf(next *float64, open bool) model.Agenda {
	if next == nil {
		return model.Agenda{Next: -1}
	}
	return model.Agenda{Next: max(0, time.Duration(*next*float64(time.Second))), Open: open}
}

// agendaSQL asks for a first row instead of EXISTS, which would be planned as a
// scan of the whole table once most of it is processed.
const agendaSQL = `
SELECT
	(
		SELECT CAST(extract(epoch FROM available_at - statement_timestamp()) AS double precision)
		FROM {schema}.datasets
		WHERE NOT is_processed
		ORDER BY available_at, id
		LIMIT 1
	) AS next,
	(
		SELECT true
		FROM {schema}.datasets
		WHERE NOT is_processed
			AND (available_at <= statement_timestamp()
				OR checked_out_by IS NOT NULL
				OR attempts > 0
				OR losses > 0
				OR last_error IS NOT NULL)
		ORDER BY available_at, id
		LIMIT 1
	) IS NOT NULL AS open`

// Wait returns after d, or as soon as rows are added or given back, or when an
// earlier row turns up while it begins to listen. Behind a pooler in transaction
// mode nothing can be heard, and it just waits.
func (s *Postgres) Wait(ctx context.Context, d time.Duration) error {
	pool, err := s.db.DB()
	if err != nil {
		return err
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		return explain("wait", err)
	}
	defer conn.Close()
	err = conn.Raw(func(driverConn any) error {
		return s.listen(ctx, driverConn.(*stdlib.Conn).Conn(), d)
	})
	return explain("wait", err)
}

func (s *Postgres) listen(ctx context.Context, conn *pgx.Conn, d time.Duration) error {
	deadline := time.Now().Add(d)
	if _, err := conn.Exec(ctx, `LISTEN `+s.channel); err != nil {
		return err
	}
	defer s.unlisten(ctx, conn)
	var next *float64
	var open bool
	if err := conn.QueryRow(ctx, s.sql.agenda).Scan(&next, &open); err != nil {
		return err
	}
	if sooner := agendaOf(next, open).Next; sooner >= 0 && time.Now().Add(sooner).Before(deadline) {
		deadline = time.Now().Add(sooner)
	}
	heard, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	_, err := conn.WaitForNotification(heard)
	if err != nil && !(errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil) {
		return err
	}
	return nil
}

// unlisten leaves the connection as it was for whoever gets it next, even when the
// wait was cut off; a connection that doesn't answer any more is closed.
func (s *Postgres) unlisten(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if _, err := conn.Exec(ctx, `UNLISTEN `+s.channel); err != nil {
		_ = conn.Close(ctx)
	}
}

// announce wakes workers that wait. It is for rare events only: NOTIFY takes a
// lock at COMMIT that all databases of the server share, so check-out and
// check-in never do it.
func (s *Postgres) announce(ctx context.Context) error {
	err := s.db.WithContext(ctx).Exec(`NOTIFY ` + s.channel).Error
	if err != nil {
		return fmt.Errorf("announce rows: %w", database.Translate(err))
	}
	return nil
}
