package errorgroups

import (
	"cmp"
	"slices"
	"time"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/model"
)

const (
	// mostGroups bounds the groups kept. When there are more, the half with the fewest
	// rows is given up and counted as others.
	mostGroups = 1000
	// mostQuoted is how many messages are told apart by their quoted texts alone.
	mostQuoted = 10
	// mostVersions bounds the versions that a group names.
	mostVersions = 10
)

// Group is the rows with one message.
type Group struct {
	Message string
	// Count is the number of rows: Failed for good, and Waiting for another try.
	Count, Failed, Waiting int64
	// AtLeast says that rows of the group may be counted among the others as well:
	// it came up after groups had to be given up.
	AtLeast bool
	// First and Last are when the first and the last of the rows failed.
	First, Last time.Time
	// Versions are those of the handler that made the rows fail, in order; at most
	// ten, and MoreVersions tells whether there are others. A version that is not
	// known, such as that of a waiting row, is left out.
	Versions     []string
	MoreVersions bool
	// Sample is the row that failed last.
	Sample checkout.Failure

	key, form string // in Groups
}

// Groups sorts failures into groups, in memory that does not grow with their number.
type Groups struct {
	byVersion bool
	scanner   scanner
	key       []byte // of the failure at hand
	groups    map[string]*Group
	// quoted has the groups that differ by quoted texts alone, by the message without
	// them.
	quoted map[string][]*Group
	others Group
	pruned bool
}

// New makes groups of messages, or of versions and messages.
func New(byVersion bool) *Groups {
	return &Groups{byVersion: byVersion, groups: map[string]*Group{}, quoted: map[string][]*Group{}}
}

// Add counts one failure.
func (g *Groups) Add(f checkout.Failure) {
	message := g.scanner.message(f.Error)
	g.key = append(g.prefix(f), message...)
	group := g.groups[string(g.key)]
	if group == nil {
		group = g.place(f, string(message))
	}
	group.add(f)
	if len(g.groups) > mostGroups {
		g.prune()
	}
}

// prefix begins the key of a failure's group.
func (g *Groups) prefix(f checkout.Failure) []byte {
	key := g.key[:0]
	if g.byVersion && f.Version != nil {
		key = append(key, *f.Version...)
	}
	return append(key, 0) // which no message has
}

// place finds or makes the group of a message that is not known as it is.
func (g *Groups) place(f checkout.Failure, message string) *Group {
	group := Group{Message: message, AtLeast: g.pruned, key: string(g.key)}
	text := withoutQuoted(message)
	if text == message {
		return g.keep(group)
	}
	group.form = string(append(g.prefix(f), text...))
	if one := g.groups[group.form]; one != nil {
		return one
	}
	alike := g.quoted[group.form]
	if len(alike) < mostQuoted {
		kept := g.keep(group)
		g.quoted[group.form] = append(alike, kept)
		return kept
	}
	one := g.keep(Group{Message: text, AtLeast: g.pruned, key: group.form})
	for _, other := range alike {
		one.merge(other)
		delete(g.groups, other.key)
	}
	delete(g.quoted, group.form)
	return one
}

func (g *Groups) keep(group Group) *Group {
	g.groups[group.key] = &group
	return &group
}

// prune gives up the half of the groups that has the fewest rows.
func (g *Groups) prune() {
	list := g.list()
	for _, group := range list[mostGroups/2:] {
		g.others.merge(group)
		delete(g.groups, group.key)
	}
	clear(g.quoted)
	for _, group := range list[:mostGroups/2] {
		if group.form != "" {
			g.quoted[group.form] = append(g.quoted[group.form], group)
		}
	}
	g.pruned = true
}

// list returns the groups, the most frequent first.
func (g *Groups) list() []*Group {
	list := make([]*Group, 0, len(g.groups))
	for _, group := range g.groups {
		list = append(list, group)
	}
	slices.SortFunc(list, func(a, b *Group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.Last.Compare(a.Last), cmp.Compare(a.key, b.key))
	})
	return list
}

// Report returns the groups so far, the most frequent first, and what belongs to none
// of them: others, whose Message is empty, and whose Count is zero if there is nothing.
func (g *Groups) Report() (groups []Group, others Group) {
	for _, group := range g.list() {
		groups = append(groups, *group)
	}
	others = g.others
	others.AtLeast = false // all of the others are there
	return groups, others
}

func (g *Group) add(f checkout.Failure) {
	one := Group{Count: 1, First: f.At, Last: f.At, Sample: f}
	if f.State == model.Waiting {
		one.Waiting = 1
	} else {
		one.Failed = 1
	}
	g.merge(&one)
	if f.Version != nil {
		g.addVersion(*f.Version)
	}
}

// merge takes the rows of another group in.
func (g *Group) merge(other *Group) {
	if g.Count == 0 || other.First.Before(g.First) {
		g.First = other.First
	}
	if g.Count == 0 || other.Last.After(g.Last) {
		g.Last, g.Sample = other.Last, other.Sample
	}
	g.Count += other.Count
	g.Failed += other.Failed
	g.Waiting += other.Waiting
	g.AtLeast = g.AtLeast || other.AtLeast
	g.MoreVersions = g.MoreVersions || other.MoreVersions
	for _, version := range other.Versions {
		g.addVersion(version)
	}
}

func (g *Group) addVersion(version string) {
	i, known := slices.BinarySearch(g.Versions, version)
	switch {
	case known:
	case len(g.Versions) == mostVersions:
		g.MoreVersions = true
	default:
		g.Versions = slices.Insert(g.Versions, i, version)
	}
}
