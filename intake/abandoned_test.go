package intake_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/windrow-go/windrow/intake"
)

func TestRemoveAbandonedTakesOnlyWhatWritersOfThatFileLeft(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.jsonl")
	begin(t, path, "begun, and never ended")
	kept := []string{".other.jsonl.1a2b3c.tmp", ".out.jsonl.my-backup.tmp", ".out.jsonl.tmp", "out.jsonl"}
	for _, name := range kept {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := entries(t, dir); len(got) != len(kept)+1 {
		t.Fatalf("before: %v", got)
	}
	if err := intake.RemoveAbandoned(path); err != nil {
		t.Fatal(err)
	}
	if got := entries(t, dir); !slices.Equal(got, kept) {
		t.Errorf("left: %v, want %v", got, kept)
	}
}

func TestRemoveAbandonedWhereThereIsNoFolder(t *testing.T) {
	if err := intake.RemoveAbandoned(filepath.Join(t.TempDir(), "none", "out.jsonl")); err != nil {
		t.Error(err)
	}
}

func TestRemoveAbandonedFollowsALink(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	link := filepath.Join(dir, "link.jsonl")
	if err := os.Symlink(filepath.Join(elsewhere, "out.jsonl"), link); err != nil {
		t.Fatal(err)
	}
	begin(t, link, "begun, and never ended")
	if err := intake.RemoveAbandoned(link); err != nil {
		t.Fatal(err)
	}
	if got := entries(t, elsewhere); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
}
