package pgcluster

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// CreateDatabase makes a database as a copy of another; an empty template stands
// for template0, an empty database. Nobody may be connected to the template.
func (c *Cluster) CreateDatabase(ctx context.Context, name, template string) error {
	if template == "" {
		template = "template0"
	}
	if err := c.exec(ctx, "CREATE DATABASE "+quote(name)+" TEMPLATE "+quote(template)); err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}

// DropDatabase removes a database, cutting off who is connected to it. One that
// is not there is no error.
func (c *Cluster) DropDatabase(ctx context.Context, name string) error {
	if err := c.exec(ctx, "DROP DATABASE IF EXISTS "+quote(name)+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}

// exec connects anew each time: a connection kept here would not outlive a Kill.
func (c *Cluster) exec(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, c.URL(superuser))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, statement)
	return err
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }
