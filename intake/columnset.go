package intake

import "fmt"

// columnSet numbers the columns of a CSV file in the order of first sight.
type columnSet struct {
	numbers map[string]int
	names   []string
	used    []bool
	lead    int  // so many columns come first, in their order
	data    bool // the column after those comes last
}

// columnsFor returns the columns that windrow's own fields have.
func columnsFor(merge bool) columnSet {
	lead := []string{"id", "key", "state", "error"}
	if merge {
		lead = []string{mergedID, mergedKey, mergedState, mergedError}
	}
	c := columnSet{numbers: make(map[string]int), lead: len(lead), data: !merge}
	if !merge {
		lead = append(lead, "data")
	}
	for _, name := range lead {
		c.add(name)
	}
	c.used[0], c.used[2] = true, true
	return c
}

func (c *columnSet) add(name string) int {
	n := len(c.names)
	c.numbers[name] = n
	c.names = append(c.names, name)
	c.used = append(c.used, false)
	return n
}

// number returns the number of the column, which may be new.
func (c *columnSet) number(name []byte) (int, error) {
	n, ok := c.numbers[string(name)]
	if !ok {
		if len(c.names) == maxColumns {
			return 0, fmt.Errorf("more than %d columns: the rows have too many different fields for CSV; JSON Lines (.jsonl) can hold them", maxColumns)
		}
		n = c.add(string(name))
	}
	c.used[n] = true
	return n, nil
}

// layout returns the header, of the columns that are used, and the place in it of
// each column by number.
func (c *columnSet) layout() (header []string, place []int) {
	order := make([]int, 0, len(c.names))
	rest := c.lead
	if c.data {
		rest++
	}
	for n := range c.lead {
		order = append(order, n)
	}
	for n := rest; n < len(c.names); n++ {
		order = append(order, n)
	}
	if c.data {
		order = append(order, c.lead)
	}
	place = make([]int, len(c.names))
	for _, n := range order {
		if c.used[n] {
			place[n] = len(header)
			header = append(header, c.names[n])
		}
	}
	return header, place
}
