package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/windrow-go/windrow/bench"
)

// page is the text of benchmarks.md in the making.
type page struct {
	strings.Builder
	places *places
}

func (p *page) paragraph(format string, args ...any) {
	fmt.Fprintf(p, format+"\n\n", args...)
}

// head says what holds for the whole page.
func (p *page) head(results []bench.Result) {
	p.paragraph("# Benchmarks")
	p.paragraph("%sWritten from saved results, not by hand.", measured(results))
	p.paragraph("Figures are medians over the rounds of a run; of rates, the lowest and the highest round are in brackets. " +
		"Batch is the most rows of one check-out, auto where windrow chooses it. " +
		"Check-outs that brought no rows do not count in the times of check-outs. Lost and doubled rows are added up over all rounds: " +
		"lost were not finished, or without a result; doubled were handed out while another claim was good.")
	p.list("Machine", "M", p.places.machines)
	var servers []string
	for _, s := range p.places.servers {
		servers = append(servers, describeServer(s))
	}
	p.list("Server", "S", servers)
}

// measured says when, with a space behind it.
func measured(results []bench.Result) string {
	var days []string
	for _, r := range results {
		if !r.Began.IsZero() {
			days = append(days, r.Began.UTC().Format(time.DateOnly))
		}
	}
	if len(days) == 0 {
		return ""
	}
	first, last := slices.Min(days), slices.Max(days)
	if first == last {
		return "Measured on " + first + ". "
	}
	return "Measured from " + first + " to " + last + ". "
}

// list states machines or servers, with names if there are several.
func (p *page) list(title, letter string, texts []string) {
	if len(texts) == 1 {
		p.paragraph("%s: %s.", title, texts[0])
		return
	}
	p.WriteString(title + "s:\n\n")
	for i, text := range texts {
		fmt.Fprintf(p, "- **%s%d**: %s\n", letter, i+1, text)
	}
	p.WriteString("\n")
}

// section is about one scenario.
func (p *page) section(all []group, charts []chart) {
	p.paragraph("## %s", all[0].scenario)
	if text := explanation(all[0].scenario); text != "" {
		p.paragraph("%s", text)
	}
	p.paragraph("```sh\n%s\n```", command(all))
	if note := p.common(all); note != "" {
		p.paragraph("%s", note)
	}
	p.paragraph("%s", p.results(all))
	if slices.ContainsFunc(all, group.unsound) {
		p.paragraph("**Rows were lost or doubled:** the other figures of such a run are worth nothing.")
	}
	p.ratios(ratios(all))
	p.figures(all)
	for _, c := range charts {
		p.paragraph("![%s](%s/%s)", c.alt(), chartFolder, c.file())
	}
}

// common says what is the same for all rows of the section.
func (p *page) common(all []group) string {
	var parts []string
	if !differ(all, group.roundCount) {
		parts = append(parts, plural(all[0].roundCount(), "round")+" each")
	}
	if n := all[0].parameters.Payload; n > 0 && !differ(all, group.payload) {
		parts = append(parts, "rows of "+plural(n, "byte"))
	}
	if limit := all[0].parameters.Seconds; limit > 0 && !differ(all, group.limit) {
		parts = append(parts, "stopped after "+plain(limit)+" s")
	}
	for _, name := range []func(group) string{p.machineOf, p.serverOf} {
		if text := name(all[0]); text != "" && !differ(all, name) {
			parts = append(parts, "on "+text)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	text := strings.Join(parts, "; ")
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

func (g group) roundCount() int { return len(g.rounds) }
func (g group) payload() int    { return g.parameters.Payload }
func (g group) limit() float64  { return g.parameters.Seconds }

func (p *page) machineOf(g group) string { return p.places.machineName(g.place.machine) }
func (p *page) serverOf(g group) string  { return p.places.serverName(g.place.server) }

// fleet is the size of the fleet.
func (g group) fleet() string {
	if g.parameters.Processes == 0 {
		return ""
	}
	return whole(g.parameters.Processes) + " × " + whole(g.parameters.Concurrency)
}

// batch is empty where there is none to speak of: only windrow's 0 means automatic,
// and only if it checks out.
func (g group) batch() string {
	if g.parameters.Batch > 0 {
		return whole(g.parameters.Batch)
	}
	checksOut := slices.ContainsFunc(g.rounds, func(r bench.Result) bool { return r.CheckOuts > 0 })
	if isWindrow(g.subject) && checksOut {
		return "auto"
	}
	return ""
}

func (g group) tableRows() string {
	if g.parameters.Rows == 0 {
		return ""
	}
	return whole(g.parameters.Rows)
}
