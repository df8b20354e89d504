package main_test

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestALoadIsNotRepeatedByAccident(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		p.write("rows.jsonl", numbers(10))
		p.ok("load", "rows.jsonl").wants(0, "loaded 10 rows")
		p.ok("load", "rows.jsonl").wants(0, "already loaded: 10 records", "--again")
		p.ok("load", "./rows.jsonl", "--json").prints(`"already":true`, `"inserted":10`)
		p.table().wants(map[string]int{"true": 10})
		p.ok("load", "rows.jsonl", "--again").wants(0, "loaded 10 rows")
		p.write("rows.jsonl", numbers(13))
		p.ok("load", "rows.jsonl").wants(0, "loaded 3 rows")
		p.table().wants(map[string]int{"true": 23})
	})
}

func TestKeysAreLoadedOnce(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		p.write("one.csv", "code,name\nA,first\nB,second\nA,first\nA,changed\n")
		p.ok("load", "one.csv", "--key", "code").wants(0, "loaded 2 rows", "had a key that is there already", "1 record had a key that is there already with other data")
		p.write("two.csv", "code,name\nB,second\nC,third\nA,other\n")
		p.ok("load", "two.csv", "--key", "code", "--json").prints(`"inserted":1`, `"records":3`)
		p.table().wants(map[string]int{"true": 3, "key = 'A'": 1})
		p.ok("show", "A", "--json").prints(`"name":"first"`)
		p.run("load", "one.csv", "--key", "missing", "--again").wants(1, "missing", "line 2")
	})
}

func TestBadRecordsAreCollectedOrStopALoad(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		p.write("rows.csv", "a,b\n1,2\n3\n4,5\n6,7,8\n9,10\n")
		p.run("load", "rows.csv").wants(1, "rows.csv", "line 3")
		p.run("load", "rows.csv", "--rejects", "bad.jsonl").wants(3, "2 bad records are in bad.jsonl")
		p.table().wants(map[string]int{"true": 3})
		lines := strings.Split(strings.TrimSpace(p.read("bad.jsonl")), "\n")
		if len(lines) != 2 {
			t.Fatalf("rejects: %q", lines)
		}
		for i, want := range []int{3, 5} {
			var bad struct {
				File, Reason, Raw string
				Line              int
			}
			if err := json.Unmarshal([]byte(lines[i]), &bad); err != nil {
				t.Fatal(err)
			}
			if bad.Line != want || bad.Reason == "" || !strings.Contains(bad.File, "rows.csv") {
				t.Errorf("reject %+v, want line %d with a reason", bad, want)
			}
		}
		p.run("load", "rows.csv", "--rejects", "bad.jsonl").wants(3, "already loaded")
	})
}

// worked loads and works five rows with keys, of which the odd ones fail.
func worked(p *place) {
	p.t.Helper()
	p.write("rows.jsonl", `{"k":"a","n":1}
{"k":"b","n":2}
{"k":"c","n":3}
{"k":"d","n":4}
{"k":"e, f","n":5}
`)
	p.ok("load", "rows.jsonl", "--key", "k")
	p.run("work", "--until-empty", "--jq", oddFails).wants(3, "2 done, 3 failed")
}

func TestStatusCountsByState(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		worked(p)
		p.write("more.jsonl", numbers(7))
		p.ok("load", "more.jsonl")
		var got map[string]any
		if err := json.Unmarshal([]byte(p.ok("status", "--json").stdout), &got); err != nil {
			t.Fatal(err)
		}
		for field, want := range map[string]any{
			"total": 12.0, "fresh": 7.0, "waiting": 0.0, "in_flight": 0.0, "expired": 0.0, "done": 2.0, "failed": 3.0, "next_seconds": 0.0,
		} {
			if got[field] != want {
				t.Errorf("%s is %v, want %v", field, got[field], want)
			}
		}
		p.ok("work", "--until-empty", "--jq", ".")
		p.ok("status", "--json").prints(`"next_seconds":null`)
		p.ok("status").prints("total", "12", "failed")
	})
}

func TestShowFindsARowByKeyOrID(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		worked(p)
		p.ok("show", "b").prints("done", `"half"`, "1 in round 0")
		p.ok("show", "a").prints("failed", "odd")
		p.ok("show", "--id", "2", "--json").prints(`"state":"done"`, `"key":"b"`, `"checkouts":1`)
		p.ok("show", "e, f").prints("failed")
		p.run("show", "z").wants(1, `no row with key "z"`)
		p.run("show", "--id", "99").wants(1, "no row with id 99")
	})
}

func TestExportsOfAllAndSome(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		worked(p)
		const b = `{"id":2,"key":"b","state":"done","result":{"half":1}}` + "\n"
		const d = `{"id":4,"key":"d","state":"done","result":{"half":2}}` + "\n"
		if got := p.ok("export", "--state", "done").stdout; got != b+d {
			t.Errorf("done: %s", got)
		}
		if got := p.ok("export").stdout; strings.Count(got, "\n") != 5 || !strings.HasPrefix(got, `{"id":1,"key":"a","state":"failed","error":`) {
			t.Errorf("all: %s", got)
		}
		p.ok("export", "-o", "out.jsonl", "--errors", "failed.jsonl").wants(0, "wrote 5 rows to out.jsonl")
		if got := p.read("out.jsonl"); got != b+d {
			t.Errorf("out.jsonl: %s", got)
		}
		if got := p.read("failed.jsonl"); strings.Count(got, `"state":"failed"`) != 3 {
			t.Errorf("failed.jsonl: %s", got)
		}
		p.ok("export", "-o", "out.csv", "--state", "done")
		if got, want := p.read("out.csv"), "id,key,state,half\n2,b,done,1\n4,d,done,2\n"; got != want {
			t.Errorf("out.csv: %s, want %s", got, want)
		}
		if got := p.ok("export", "--output-format", "csv", "--state", "failed").stdout; !strings.Contains(got, `"e, f"`) {
			t.Errorf("CSV of the failed: %s", got)
		}
		if got := p.ok("export", "--data", "--state", "done").stdout; !strings.Contains(got, `"data":{`) {
			t.Errorf("with data: %s", got)
		}
		p.run("export", "-o", "no-such-folder/out.jsonl").wants(1, "no-such-folder")
	})
}

func TestReprocessPutsTheChosenRowsBack(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		worked(p)
		b := p.table()
		p.ok("reprocess", "--failed", "--dry-run").prints("3 rows would be put back", "3 failed")
		p.ok("reprocess", "--all", "--dry-run", "--json").prints(`"done":2`, `"failed":3`)
		b.wants(map[string]int{"is_processed": 5})
		p.run("reprocess", "--all").wants(2, "--yes", "5 rows")
		b.wants(map[string]int{"is_processed": 5})
		p.ok("reprocess", "--failed").prints("3 rows put back")
		b.wants(map[string]int{"NOT is_processed AND round = 1 AND attempts = 0": 3})
		p.ok("work", "--until-empty", "--jq", `{again: .n}`)
		p.run("reprocess", "--keys", "a,nobody", "--json").prints(`"put_back":1`, "nobody")
		p.ok("reprocess", "--keys", "b").prints("1 row put back")
		b.wants(map[string]int{"NOT is_processed": 2, "result IS NOT NULL": 5})
		p.ok("reprocess", "--all", "--yes")
		p.ok("work", "--until-empty", "--jq", `{last: .n}`)
		b.wants(map[string]int{"is_processed AND error IS NULL": 5})
	})
}

func TestARowBeingWorkedIsReprocessedAfterItsCheckIn(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		p.load(1)
		worker := p.start("work", "--until-empty", "--exec", untilGo+"echo $WINDROW_ROW_IDEMPOTENCY_KEY")
		eventually(t, "the row is begun", func() bool { return len(p.lines("begun")) == 1 })
		p.ok("reprocess", "--all", "--yes").prints("0 rows put back", "1 row that is being worked is worked again")
		p.write("go", "")
		worker.end().wants(0)
		r := p.table().rows("true")[0]
		if !r.IsProcessed || r.Round != 1 || r.Checkouts != 2 || !strings.HasSuffix(text(r.Result), `/1/1"`) {
			t.Errorf("row %+v with result %s, want its second round done", r, text(r.Result))
		}
		if begun := p.lines("begun"); len(begun) != 2 {
			t.Errorf("begun: %v, want twice", begun)
		}
	})
}

func TestErrorsAreTriedAgainUpToTheLimit(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		p.load(2)
		p.run("work", "--until-empty", "--max-attempts", "2", "--exec",
			`echo "$WINDROW_ROW_ID/$WINDROW_ROW_ATTEMPT" >> tries; [ "$WINDROW_ROW_ID" = 1 ] && [ "$WINDROW_ROW_ATTEMPT" = 2 ] && echo fine`,
		).wants(3, "1 done, 1 failed", "2 retries")
		if tries := p.lines("tries"); len(tries) != 4 {
			t.Errorf("tries: %v", tries)
		}
		p.table().wants(map[string]int{
			"id = 1 AND error IS NULL AND attempts = 2 AND last_error IS NULL":         1,
			"id = 2 AND error LIKE 'exit status 1%' AND attempts = 2 AND is_processed": 1,
		})
	})
}

func TestATimeoutIsAnErrorOfTheRow(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.load(1)
	p.run("work", "--until-empty", "--max-attempts", "1", "--timeout", "300ms", "--exec", "sleep 60").wants(3, "1 failed")
	if r := p.table().rows("true")[0]; !strings.Contains(text(r.Error), "timed out after 300ms") {
		t.Errorf("error %q", text(r.Error))
	}
}
