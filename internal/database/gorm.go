package database

import (
	"context"
	"time"

	"go.uber.org/zap"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// slowStatement is from when on a statement is worth a line in the log.
const slowStatement = 2 * time.Second

// gormConfig is the same for both engines: no transactions of gorm's own, no
// savepoints in place of nested ones, no prepared statements of gorm's (two
// transactions and one pooled query of the same text can deadlock on them; pgx
// keeps its own), times in UTC.
func gormConfig(log *zap.Logger) *gorm.Config {
	if log == nil {
		log = zap.NewNop()
	}
	return &gorm.Config{
		SkipDefaultTransaction:   true,
		DisableNestedTransaction: true,
		DisableAutomaticPing:     true,
		NowFunc:                  func() time.Time { return time.Now().UTC() },
		Logger:                   &zapLogger{log: log},
	}
}

// zapLogger passes gorm's events on to zap. Errors are returned to the caller,
// who logs or returns them, so only slow statements are logged here, and never
// their values.
type zapLogger struct {
	log *zap.Logger
}

func (l *zapLogger) LogMode(logger.LogLevel) logger.Interface { return l }

func (l *zapLogger) Info(_ context.Context, text string, args ...any) {
	l.log.Sugar().Debugf(text, args...)
}

func (l *zapLogger) Warn(_ context.Context, text string, args ...any) {
	l.log.Sugar().Debugf(text, args...)
}

func (l *zapLogger) Error(_ context.Context, text string, args ...any) {
	l.log.Sugar().Debugf(text, args...)
}

func (l *zapLogger) Trace(_ context.Context, begin time.Time, fc func() (string, int64), err error) {
	took := time.Since(begin)
	if took < slowStatement || err != nil || !l.log.Core().Enabled(zap.DebugLevel) {
		return
	}
	text, rows := fc()
	l.log.Debug("slow statement", zap.Duration("took", took), zap.Int64("rows", rows), zap.String("sql", text))
}

// ParamsFilter keeps the values out of the statement's text.
func (l *zapLogger) ParamsFilter(_ context.Context, text string, _ ...any) (string, []any) {
	return text, nil
}
