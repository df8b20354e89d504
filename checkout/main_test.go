package checkout_test

import (
	"os"
	"testing"

	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(strangerVariable) != "" {
		os.Exit(playStranger())
	}
	os.Exit(pgtest.Run(m))
}
