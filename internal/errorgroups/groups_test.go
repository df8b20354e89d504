package errorgroups_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/errorgroups"
	"github.com/windrow-go/windrow/model"
)

var start = time.Date(2026, 11, 3, 10, 0, 0, 0, time.UTC)

// failure is row id's, that many seconds after start.
func failure(id int64, text, version string) checkout.Failure {
	f := checkout.Failure{ID: id, State: model.Failed, Error: text, At: start.Add(time.Duration(id) * time.Second)}
	if version != "" {
		f.Version = &version
	}
	return f
}

// counts are the groups' rows by version, where there is one, and message.
func counts(groups []errorgroups.Group) map[string]int64 {
	m := map[string]int64{}
	for _, g := range groups {
		m[strings.Join(append(slices.Clone(g.Versions), g.Message), " ")] += g.Count
	}
	return m
}

func wantCounts(t *testing.T, groups []errorgroups.Group, want map[string]int64) {
	t.Helper()
	if got := counts(groups); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("groups:\n got %v\nwant %v", got, want)
	}
}

func TestAGroupTellsOfItsRows(t *testing.T) {
	g := errorgroups.New(false)
	waiting := failure(9, "row 9 is late", "")
	waiting.State = model.Waiting
	for _, f := range []checkout.Failure{
		failure(5, "row 5 is late", "v2"), waiting, failure(2, "row 2 is late", "v1"), failure(3, "another", "v1"), failure(7, "row 7 is late", "v1"),
	} {
		g.Add(f)
	}
	groups, others := g.Report()
	if len(groups) != 2 || others.Count != 0 {
		t.Fatalf("groups %+v, others %+v", groups, others)
	}
	got := groups[0]
	if got.Message != "row <n> is late" || got.Count != 4 || got.Failed != 3 || got.Waiting != 1 || got.AtLeast {
		t.Errorf("group %+v", got)
	}
	if !got.First.Equal(start.Add(2*time.Second)) || !got.Last.Equal(start.Add(9*time.Second)) {
		t.Errorf("from %v to %v", got.First, got.Last)
	}
	if got.Sample.ID != 9 || got.Sample.Error != "row 9 is late" {
		t.Errorf("sample %+v, want the row that failed last", got.Sample)
	}
	if fmt.Sprint(got.Versions) != "[v1 v2]" || got.MoreVersions {
		t.Errorf("versions %v", got.Versions)
	}
}

func TestVersionsAreToldApartOnDemand(t *testing.T) {
	g := errorgroups.New(true)
	for id, version := range []string{"v1", "v2", "v1", ""} {
		g.Add(failure(int64(id), "bad", version))
	}
	groups, _ := g.Report()
	wantCounts(t, groups, map[string]int64{"v1 bad": 2, "v2 bad": 1, "bad": 1})
}

func TestAGroupNamesTenVersions(t *testing.T) {
	g := errorgroups.New(false)
	for id := range int64(30) {
		g.Add(failure(id, "bad", fmt.Sprintf("v%02d", id%11)))
	}
	groups, _ := g.Report()
	if got := groups[0]; len(got.Versions) != 10 || !got.MoreVersions || !slices.IsSorted(got.Versions) {
		t.Errorf("versions %v, more %v", got.Versions, got.MoreVersions)
	}
}

func TestFewQuotedTextsAreToldApart(t *testing.T) {
	g := errorgroups.New(false)
	for id := range int64(100) {
		g.Add(failure(id, fmt.Sprintf(`field '%s' is missing`, string('a'+rune(id%10))), ""))
		g.Add(failure(id, "can't and won't", ""))
	}
	groups, _ := g.Report()
	if len(groups) != 11 || groups[1].Count != 10 {
		t.Errorf("groups %v", counts(groups))
	}
}

func TestManyQuotedTextsAreOneGroup(t *testing.T) {
	for _, byVersion := range []bool{false, true} {
		g := errorgroups.New(byVersion)
		for id := range int64(300) {
			g.Add(failure(id, fmt.Sprintf(`no "%s" in 'it\'s'`, word(id)), "v1"))
			g.Add(failure(id, fmt.Sprintf("no `%s`, says I", word(id%3)), "v1"))
		}
		groups, _ := g.Report()
		wantCounts(t, groups, map[string]int64{
			`v1 no "<text>" in '<text>'`: 300,
			"v1 no `aaaz`, says I":       100, "v1 no `baaz`, says I": 100, "v1 no `caaz`, says I": 100,
		})
		if got := groups[0]; got.Sample.ID != 299 || !got.First.Equal(start) || got.AtLeast {
			t.Errorf("group %+v", got)
		}
	}
}

// word is a word of its own for each number below 17,576, without a digit, and no hex.
func word(n int64) string {
	return string([]byte{'a' + byte(n%26), 'a' + byte(n/26%26), 'a' + byte(n/676%26), 'z'})
}

// What is rare may be counted among the others; nothing is lost, and what is frequent
// is listed.
func TestMemoryIsBoundedAndNothingIsLost(t *testing.T) {
	const rows = 15_000
	random := rand.New(rand.NewPCG(1, 2))
	g := errorgroups.New(false)
	frequent := int64(0)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for id := range int64(rows) {
		text := strings.Repeat(word(random.Int64N(17_576))+" "+word(random.Int64N(17_576))+" ", 100)
		if random.IntN(20) == 0 {
			text = fmt.Sprintf("frequent %d", id)
			frequent++
		}
		g.Add(failure(id, text, ""))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
	groups, others := g.Report()
	total := others.Count
	for _, group := range groups {
		total += group.Count
	}
	if total != rows || len(groups) > 1000 || len(groups) < 500 {
		t.Errorf("%d groups of %d rows in all, want at most 1,000 and %d", len(groups), total, rows)
	}
	if got := groups[0]; got.Message != "frequent <n>" || got.Count != frequent || got.AtLeast {
		t.Errorf("first: %s, %d, at least: %v; want all %d of the frequent", got.Message, got.Count, got.AtLeast, frequent)
	}
	if last := groups[len(groups)-1]; !last.AtLeast {
		t.Errorf("%+v came up late, and its count is taken for all", last.Message)
	}
	if others.Message != "" || others.AtLeast || others.Failed != others.Count {
		t.Errorf("others %+v", others)
	}
}

func BenchmarkAdd(b *testing.B) {
	text := `exit status 1: Traceback (most recent call last):
  File "/srv/jobs/score.py", line %[1]d, in <module>
    main(row)
ValueError: invalid literal for int() with base 10: 'x%[1]d' of customer 4f1c09aa17b2, 2026-11-03T10:22:01Z`
	failures := make([]checkout.Failure, 1000)
	for i := range failures {
		failures[i] = failure(int64(i), fmt.Sprintf(text, i), "4f1c09aa17b2")
	}
	g := errorgroups.New(false)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		g.Add(failures[i%len(failures)])
	}
}
