package main_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/windrow-go/windrow/internal/pgcluster"
)

// readmeBlock is the first block of commands under a heading of the README.
func readmeBlock(t *testing.T, heading string) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), heading+"\n")
	_, rest, opened := strings.Cut(rest, "\n```\n")
	block, _, closed := strings.Cut(rest, "\n```\n")
	if !found || !opened || !closed {
		t.Fatalf("the README has no block of commands under %q", heading)
	}
	return block
}

func TestTheRecipeForJoiningResultsBackWorks(t *testing.T) {
	t.Parallel()
	p := newFleet(t)
	conn, err := pgx.Connect(t.Context(), p.database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	_, err = conn.Exec(t.Context(), `
		CREATE TABLE customers (email text PRIMARY KEY, visits integer, score numeric);
		INSERT INTO customers (email, visits) VALUES
			('a@example', 1),
			('odd "quoted" \back@example', 2), -- what COPY or JSON would escape
			('c@example', 3)`)
	if err != nil {
		t.Fatal(err)
	}
	servers, err := pgcluster.Programs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bash := exec.Command("bash", "-euo", "pipefail", "-c", readmeBlock(t, "### Joining results back to your own table"))
	bash.Dir = p.dir
	bash.Env = append(p.environment(), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH")+":"+servers)
	if out, err := bash.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var scores string
	err = conn.QueryRow(t.Context(), `SELECT string_agg(score::text, ' ' ORDER BY email) FROM customers`).Scan(&scores)
	if err != nil || scores != "10 30 20" {
		t.Fatalf("scores %q, %v", scores, err)
	}
}
