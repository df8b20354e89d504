package main

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// plainText words an error for people: what the server says without driver
// decoration, and no statement text.
func plainText(err error) string {
	text := err.Error()
	var server *pgconn.PgError
	if errors.As(err, &server) {
		text = strings.Replace(text, server.Error(), server.Message, 1)
		if server.Code == "42501" {
			text += "; docs/guarantees.md lists the privileges that each command needs"
		}
	}
	return text
}
