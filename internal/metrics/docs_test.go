package metrics_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/windrow-go/windrow/internal/metrics"
)

const (
	guide     = "../../docs/operations.md"
	dashboard = "../../docs/grafana-dashboard.json"
)

// family is what is exported under one name: the values of each label.
type family map[string][]string

// exported are the families of a worker with a database. A histogram has the names
// of its series, too.
func exported(t *testing.T) map[string]family {
	t.Helper()
	w := metrics.New()
	w.Database("postgres", onSQLite(t).store, error.Error)
	serve(t, w) // which has a metric of its own
	gathered, err := w.Registry().Gather()
	check(t, err)
	out := map[string]family{"up": {}} // Prometheus's own
	for _, one := range gathered {
		f := family{}
		for _, series := range one.GetMetric() {
			for _, label := range series.GetLabel() {
				f[label.GetName()] = append(f[label.GetName()], label.GetValue())
			}
		}
		if strings.HasSuffix(one.GetName(), "_seconds") && one.GetMetric()[0].GetHistogram() != nil {
			for _, ending := range []string{"_bucket", "_sum", "_count"} {
				out[one.GetName()+ending] = f
			}
		}
		out[one.GetName()] = f
	}
	return out
}

var (
	selector = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`([a-z_]+)(=~|!=|!~|=)"([^"]*)"`)
	grouping = regexp.MustCompile(`\b(by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)`)
	brackets = regexp.MustCompile(`\[[^\]]*\]|"[^"]*"`)
	name     = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*(\s*\()?`)
	// external are the labels that Prometheus gives each series.
	external = []string{"job", "instance", "le"}
)

// faults returns what in a PromQL expression is not exported: a metric, a label of it,
// or a label's value.
func faults(expr string, all map[string]family) (out []string) {
	for _, found := range selector.FindAllStringSubmatch(expr, -1) {
		for _, m := range matcher.FindAllStringSubmatch(found[2], -1) {
			if slices.Contains(external, m[1]) {
				continue
			}
			values, there := all[found[1]][m[1]]
			if !there {
				out = append(out, found[1]+" has no label "+m[1])
			}
			for value := range strings.SplitSeq(m[3], "|") {
				if there && !slices.Contains(values, value) {
					out = append(out, found[1]+" has no "+m[1]+" "+value)
				}
			}
		}
	}
	rest := selector.ReplaceAllString(expr, "$1")
	labels := grouping.FindAllStringSubmatch(rest, -1)
	rest = brackets.ReplaceAllString(grouping.ReplaceAllString(rest, ""), "")
	var used []string
	for _, word := range name.FindAllString(rest, -1) {
		if strings.HasSuffix(word, "(") || slices.Contains([]string{"and", "or", "unless", "bool", "offset"}, word) {
			continue
		}
		used = append(used, word)
		if all[word] == nil {
			out = append(out, word+" is not exported")
		}
	}
	for _, group := range labels {
		for label := range strings.SplitSeq(group[2], ",") {
			label = strings.TrimSpace(label)
			has := func(metric string) bool { return all[metric][label] != nil }
			if label != "" && !slices.Contains(external, label) && !slices.ContainsFunc(used, has) {
				out = append(out, "nothing here has a label "+label)
			}
		}
	}
	if len(used) == 0 {
		out = append(out, "no metric is used")
	}
	return out
}

func TestFaultsOfExpressionsAreFound(t *testing.T) {
	all := map[string]family{"a_total": {"kind": {"x", "y"}}, "up": {}}
	tests := map[string]int{
		`sum by (job, kind) (rate(a_total{kind="x"}[5m])) > 0 and absent(up == 1)`: 0,
		`sum(rate(a_total{job="$job",kind=~"x|y"}[$__rate_interval])) / 2`:         0,
		`rate(b_total[5m])`:             1,
		`a_total{kind="z"}`:             1,
		`a_total{sort="x"}`:             1,
		`sum by (sort) (a_total)`:       1,
		`rate(a_total[5m]) / c_total{}`: 1,
		`vector(1)`:                     1,
	}
	for expr, want := range tests {
		if got := faults(expr, all); len(got) != want {
			t.Errorf("%s: %q, want %d", expr, got, want)
		}
	}
}

// yamlBlocks are the YAML examples of the guide.
func yamlBlocks(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(guide)
	check(t, err)
	var blocks []string
	for i, part := range strings.Split(string(text), "\n```") {
		if block, is := strings.CutPrefix(part, "yaml\n"); is && i%2 == 1 {
			blocks = append(blocks, block)
		}
	}
	return blocks
}

type alertRule struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

func TestAlertRulesAreOfWhatIsExported(t *testing.T) {
	var rules []alertRule
	for _, block := range yamlBlocks(t) {
		var file struct{ Groups []struct{ Rules []alertRule } }
		if err := yaml.Unmarshal([]byte(block), &file); err != nil {
			t.Fatalf("%v in\n%s", err, block)
		}
		for _, group := range file.Groups {
			rules = append(rules, group.Rules...)
		}
	}
	if len(rules) < 10 {
		t.Fatalf("%d rules found", len(rules))
	}
	all := exported(t)
	for _, rule := range rules {
		if rule.Alert == "" || rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
			t.Errorf("%+v is not whole", rule)
		}
		for _, fault := range faults(rule.Expr, all) {
			t.Errorf("%s: %s", rule.Alert, fault)
		}
	}
}

func TestTheDashboardIsOfWhatIsExported(t *testing.T) {
	text, err := os.ReadFile(dashboard)
	check(t, err)
	var board struct {
		Title  string
		Panels []struct {
			Title   string
			Type    string
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Name, Type, Definition string }
		}
	}
	check(t, json.Unmarshal(text, &board))
	all := exported(t)
	drawn := ""
	for _, panel := range board.Panels {
		if panel.Type != "row" && len(panel.Targets) == 0 {
			t.Errorf("%s shows nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			drawn += target.Expr + "\n"
			for _, fault := range faults(target.Expr, all) {
				t.Errorf("%s: %s", panel.Title, fault)
			}
		}
	}
	for _, variable := range board.Templating.List {
		if inner, is := strings.CutPrefix(variable.Definition, "label_values("); is {
			metric, _, _ := strings.Cut(inner, ", ")
			for _, fault := range faults(metric, all) {
				t.Errorf("variable %s: %s", variable.Name, fault)
			}
		}
	}
	for metric := range all {
		if strings.HasPrefix(metric, "windrow_") && !strings.Contains(metric, "_duration_") &&
			metric != "windrow_rows_checked_out_total" && !strings.Contains(drawn, metric) {
			t.Errorf("%s is not on the dashboard", metric)
		}
	}
}

// What is in backquotes in the guide's table, and looks like a metric, is one; and each
// of windrow's own is there, with all its labels and their values.
func TestTheGuideTellsOfEveryMetric(t *testing.T) {
	text, err := os.ReadFile(guide)
	check(t, err)
	all := exported(t)
	for _, found := range regexp.MustCompile("`((?:windrow|go|process|promhttp)_[a-z_]+)").FindAllStringSubmatch(string(text), -1) {
		if metric := found[1]; all[metric] == nil && !strings.HasSuffix(metric, "_") {
			t.Errorf("the guide tells of %s, which is not exported", metric)
		}
	}
	for metric, labels := range all {
		if !strings.HasPrefix(metric, "windrow_") || regexp.MustCompile("_(bucket|sum|count)$").MatchString(metric) {
			continue
		}
		_, row, _ := strings.Cut(string(text), "\n| `"+metric)
		row, _, there := strings.Cut(row, "\n")
		if !there {
			t.Errorf("the guide does not tell of %s", metric)
		}
		for label, values := range labels {
			if !regexp.MustCompile(`^\{[^}]*\b` + label + `\b[^}]*\}`).MatchString(row) {
				t.Errorf("the guide does not tell of the label %s of %s", label, metric)
			}
			for _, value := range values {
				if !strings.Contains(row, "`"+value+"`") && label != "op" {
					t.Errorf("the guide does not tell of the %s %s of %s", label, value, metric)
				}
			}
		}
	}
}
