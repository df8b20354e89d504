package main_test

import "testing"

func TestAWorkerWarnsWhenAnIndexIsMissing(t *testing.T) {
	t.Parallel()
	p := newFleet(t)
	p.load(10_000)
	b := p.table()
	if err := b.db.Exec(`DROP INDEX windrow.unprocessed_datasets_idx`).Error; err != nil {
		t.Fatal(err)
	}
	worker := p.start("work", "-j", "2", "--jq", doubling)
	const warning = `the index unprocessed_datasets_idx is missing: CREATE INDEX CONCURRENTLY unprocessed_datasets_idx ON \"windrow\".datasets`
	eventually(t, "the worker warns", func() bool { return contains(worker.stderr.String(), warning) })
	worker.kill()
}
