package checkout

import (
	"fmt"
	"slices"
	"strings"
)

// plan is a node of a PostgreSQL plan, as EXPLAIN (FORMAT JSON) and auto_explain
// write it.
type plan struct {
	Type     string  `json:"Node Type"`
	Relation string  `json:"Relation Name"`
	Index    string  `json:"Index Name"`
	Cost     float64 `json:"Total Cost"`
	Plans    []plan
}

// The indexes by which hot statements are meant to read the table: the queue's by
// the looks for rows, the key's by all that is about certain rows.
const (
	queueIndex = "unprocessed_datasets_idx"
	keyIndex   = "datasets_pkey"
)

// scansBy lists the ways to read the table that go by the index alone.
func scansBy(index string) []string {
	return []string{"Index Scan " + index, "Index Only Scan " + index}
}

// unwanted are the steps that no hot statement is meant to have, whatever they
// work on. A bitmap or sequential scan in a SERIALIZABLE transaction locks the
// whole relation against everybody, and what sorts or hashes has read too much.
var unwanted = []string{
	"Sort", "Incremental Sort", "Hash Join", "Merge Join", "Seq Scan", "Bitmap Heap Scan", "Bitmap Index Scan",
}

// fault names the first step that is not as meant, or is empty: the table may be
// read in the allowed ways only, and nothing may be among the unwanted.
func (p plan) fault(allowed []string) string {
	for _, scan := range p.scans("datasets") {
		if !slices.Contains(allowed, scan) {
			return scan
		}
	}
	for _, kind := range p.types() {
		if slices.Contains(unwanted, kind) {
			return kind
		}
	}
	return ""
}

// scans lists every way in which the plan reads the table, such as "Index Scan
// datasets_pkey".
func (p plan) scans(relation string) []string {
	var list []string
	p.each(func(n plan) {
		if n.Relation == relation && n.Type != "ModifyTable" {
			list = append(list, strings.TrimSpace(n.Type+" "+n.Index))
		}
	})
	slices.Sort(list)
	return slices.Compact(list)
}

func (p plan) types() []string {
	var list []string
	p.each(func(n plan) { list = append(list, n.Type) })
	return list
}

func (p plan) each(visit func(plan)) {
	visit(p)
	for _, child := range p.Plans {
		child.each(visit)
	}
}

func (p plan) String() string {
	var lines []string
	p.each(func(n plan) { lines = append(lines, fmt.Sprintf("%s %s %s", n.Type, n.Relation, n.Index)) })
	return strings.Join(lines, "; ")
}
