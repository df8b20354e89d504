package pgcluster_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/windrow-go/windrow/internal/pgcluster"
	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
)

// ownerVariable makes the test program play a process that starts a cluster, says
// its folder and pid, and then waits for its end.
const ownerVariable = "PGCLUSTER_TEST_OWNER"

func TestMain(m *testing.M) {
	if os.Getenv(ownerVariable) != "" {
		playOwner()
	}
	os.Exit(pgtest.Run(m))
}

func playOwner() {
	cluster, err := pgcluster.Start(context.Background(), pgcluster.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	pooler, err := pgcluster.StartPooler(context.Background(), cluster)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(cluster.Folder(), cluster.Pid(), pooler.URL("postgres"))
	_, _ = io.Copy(io.Discard, os.Stdin) // until killed
	os.Exit(1)
}
