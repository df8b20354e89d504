package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/zap"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

// MaxConnections is how many connections a process opens at most: forty
// processes then fit a server with the default of a hundred, with room for others.
const MaxConnections = 3

// keepAlive notices a dead connection within about half a minute, on our side; for
// the server's side see keepAliveSQL.
var keepAlive = net.KeepAliveConfig{
	Enable:   true,
	Idle:     10 * time.Second,
	Interval: 5 * time.Second,
	Count:    4,
}

// OpenPostgres opens the PostgreSQL database at address (a URL or a key=value
// string; libpq's PG* variables, service and password files complete it), with a
// pool of at most [MaxConnections]. It does not connect yet.
func OpenPostgres(address string, log *zap.Logger) (*gorm.DB, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("database address: %w", hidePassword(err))
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAliveConfig: keepAlive, Control: limitUnanswered}
	config.DialFunc = dialer.DialContext
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 10 * time.Second
	}
	if _, set := config.RuntimeParams["application_name"]; !set {
		config.RuntimeParams["application_name"] = "windrow"
	}
	pool := stdlib.OpenDB(*config, stdlib.OptionAfterConnect(settleSession))
	setPool(pool, MaxConnections)
	return gorm.Open(wordless{postgres.New(postgres.Config{Conn: pool})}, gormConfig(log))
}

// settleSession prepares a new connection.
func settleSession(ctx context.Context, conn *pgx.Conn) error {
	if err := readTimesInUTC(ctx, conn); err != nil {
		return err
	}
	// So that the server, too, notices soon that this end is gone, or no longer
	// takes what it is sent, as when this process is suspended. It isn't worth
	// failing for, should a pooler or another kind of server refuse it.
	_, err := conn.Exec(ctx, keepAliveSQL)
	if conn.IsClosed() {
		return err
	}
	return nil
}

const keepAliveSQL = `
SET tcp_keepalives_idle = 10;
SET tcp_keepalives_interval = 5;
SET tcp_keepalives_count = 4;
SET tcp_user_timeout = 20000`

// readTimesInUTC makes instants come as UTC instead of in the zone of this
// machine, which has no say in them.
func readTimesInUTC(_ context.Context, conn *pgx.Conn) error {
	conn.TypeMap().RegisterType(&pgtype.Type{
		Name:  "timestamptz",
		OID:   pgtype.TimestamptzOID,
		Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
	})
	return nil
}

// ServerName describes where address leads, without its password:
// user@host:port/db.
func ServerName(address string) string {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return "PostgreSQL"
	}
	return NameOf(&config.Config)
}

// NameOf is [ServerName] of an address that has been read.
func NameOf(config *pgconn.Config) string {
	host := config.Host
	if !strings.HasPrefix(host, "/") {
		host = net.JoinHostPort(host, fmt.Sprint(config.Port))
	}
	return fmt.Sprintf("%s@%s/%s", config.User, host, config.Database)
}

// HasPassword tells whether address may hold a password, and so must not be shown.
func HasPassword(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" {
		return strings.Contains(address, "password")
	}
	_, set := u.User.Password()
	return set || u.Query().Has("password") || u.Query().Has("sslpassword")
}

// hidePassword keeps a parse error's reason and drops the address it quotes.
func hidePassword(err error) error {
	var parse *pgconn.ParseConfigError
	if !errors.As(err, &parse) {
		return fmt.Errorf("it can't be read")
	}
	reason := err.Error()
	if i := strings.LastIndex(reason, "`: "); i >= 0 {
		reason = reason[i+3:]
	}
	return fmt.Errorf("%s", reason)
}

func setPool(pool *sql.DB, n int) {
	pool.SetMaxOpenConns(n)
	pool.SetMaxIdleConns(n)
	pool.SetConnMaxLifetime(30 * time.Minute)
}

// Close closes db's pool.
func Close(db *gorm.DB) error {
	pool, err := db.DB()
	if err != nil {
		return err
	}
	return pool.Close()
}

// Ping tells whether the server answers.
func Ping(ctx context.Context, db *gorm.DB) error {
	pool, err := db.DB()
	if err != nil {
		return err
	}
	return Translate(pool.PingContext(ctx))
}
