package database_test

import (
	"os"
	"testing"

	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
