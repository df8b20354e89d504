package report

import (
	"slices"
	"strings"
	"unicode"
)

// trait is something by which groups are told apart in a chart.
type trait struct {
	name string
	text func(group) string // empty: nothing to say
}

func traits(places *places) []trait {
	return []trait{
		{"subject", func(g group) string { return g.subject }},
		{"case", func(g group) string { return g.condition }},
		{"batch", func(g group) string {
			switch text := g.batch(); text {
			case "":
				return ""
			case "auto":
				return "automatic batch"
			default:
				return "batch " + text
			}
		}},
		{"processes", func(g group) string {
			if g.parameters.Processes == 0 {
				return ""
			}
			return plural(g.parameters.Processes, "process")
		}},
		{"slots", func(g group) string {
			if g.parameters.Concurrency == 0 {
				return ""
			}
			return plural(g.parameters.Concurrency, "slot") + " each"
		}},
		{"rows", func(g group) string {
			if g.parameters.Rows == 0 {
				return ""
			}
			return plural(g.parameters.Rows, "row")
		}},
		{"payload", func(g group) string {
			if g.parameters.Payload == 0 {
				return ""
			}
			return plural(g.parameters.Payload, "byte") + " a row"
		}},
		{"limit", func(g group) string {
			if g.parameters.Seconds == 0 {
				return ""
			}
			return plain(g.parameters.Seconds) + " s"
		}},
		{"machine", func(g group) string { return places.machineName(g.place.machine) }},
		{"server", func(g group) string { return places.serverName(g.place.server) }},
	}
}

// common is what all groups share, for a chart's second line; traits that the chart
// shows in another way are left out.
func common(all []group, places *places, without ...string) string {
	var parts []string
	for _, t := range remaining(traits(places), without) {
		if text := t.text(all[0]); text != "" && !differ(all, t.text) {
			parts = append(parts, text)
		}
	}
	return clean(strings.Join(parts, ", "))
}

// labels tells each group apart from the others in as few words as that takes: a
// trait is added to those only that are still alike.
func labels(all []group, places *places, without ...string) []string {
	found := make([]string, len(all))
	for _, t := range remaining(traits(places), without) {
		alike := map[string][]int{}
		for i, label := range found {
			alike[label] = append(alike[label], i)
		}
		for label, some := range alike {
			addTrait(found, label, some, func(i int) string { return t.text(all[i]) })
		}
	}
	for i, g := range all {
		if found[i] == "" {
			found[i] = g.subject
		}
		found[i] = clean(found[i])
	}
	return found
}

// addTrait adds to some of the labels, all alike so far, if it sets them apart.
func addTrait(labels []string, label string, some []int, text func(i int) string) {
	if !slices.ContainsFunc(some, func(i int) bool { return text(i) != text(some[0]) }) {
		return
	}
	for _, i := range some {
		switch more := text(i); {
		case more == "":
		case label == "":
			labels[i] = more
		default:
			labels[i] = label + ", " + more
		}
	}
}

func remaining(all []trait, without []string) []trait {
	var some []trait
	for _, t := range all {
		if !slices.Contains(without, t.name) {
			some = append(some, t)
		}
	}
	return some
}

// clean takes control characters away, which XML can't hold.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// slug makes part of a file's name.
func slug(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	return strings.Join(words, "-")
}
