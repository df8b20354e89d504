package report

import (
	"slices"
	"strings"
)

// table is a table of Markdown. Columns without values are left out.
type table struct {
	rows    int
	columns []column
}

type column struct {
	title string
	right bool // numbers
	cells []string
}

// text adds a column; an empty cell is a value that is missing.
func (t *table) text(title string, cell func(row int) string) { t.add(title, false, cell) }

// number is the like for numbers.
func (t *table) number(title string, cell func(row int) string) { t.add(title, true, cell) }

func (t *table) add(title string, right bool, cell func(row int) string) {
	cells := make([]string, t.rows)
	for row := range cells {
		cells[row] = cell(row)
	}
	if slices.ContainsFunc(cells, func(c string) bool { return c != "" }) {
		t.columns = append(t.columns, column{title, right, cells})
	}
}

// varying adds a column only if its cells differ.
func (t *table) varying(title string, right bool, cell func(row int) string) {
	for row := range t.rows {
		if cell(row) != cell(0) {
			t.add(title, right, cell)
			return
		}
	}
}

func (t *table) String() string {
	var b strings.Builder
	line := func(cell func(column) string) {
		for _, c := range t.columns {
			b.WriteString("| " + cell(c) + " ")
		}
		b.WriteString("|\n")
	}
	line(func(c column) string { return escape(c.title) })
	line(func(c column) string {
		if c.right {
			return "--:"
		}
		return "---"
	})
	for row := range t.rows {
		line(func(c column) string {
			if c.cells[row] == "" {
				return "–"
			}
			return escape(c.cells[row])
		})
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// escape keeps text within its cell.
func escape(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "\r", " ").Replace(text)
}
